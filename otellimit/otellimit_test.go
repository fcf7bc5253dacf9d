package otellimit_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/internal/bounded"
	"github.com/accesslimit/accesslimit/internal/extensiontest"
	"github.com/accesslimit/accesslimit/nethttplimit"
	"github.com/accesslimit/accesslimit/otellimit"
)

// noRedis returns options with a Redis that does not exist.
func noRedis(t *testing.T) core.Options {
	client := redis.NewClient(&redis.Options{Addr: "127.0.0.1:1", DialerRetries: 1})
	bounded.Cleanup(t, func() { _ = client.Close() })
	return core.Options{Redis: client}
}

// collect returns the metrics of a reader by their names.
func collect(t *testing.T, reader metric.Reader) map[string]metricdata.Metrics {
	t.Helper()
	var all metricdata.ResourceMetrics
	if err := reader.Collect(context.Background(), &all); err != nil {
		t.Fatal(err)
	}
	found := make(map[string]metricdata.Metrics)
	for _, scope := range all.ScopeMetrics {
		if scope.Scope.Name != "github.com/accesslimit/accesslimit/otellimit" {
			t.Errorf("the scope is %q", scope.Scope.Name)
		}
		for _, m := range scope.Metrics {
			found[m.Name] = m
		}
	}
	return found
}

// points returns the values of a counter, or of another number that is a sum, by their attributes.
func points(m metricdata.Metrics) map[string]int64 {
	found := make(map[string]int64)
	sum, _ := m.Data.(metricdata.Sum[int64])
	for _, p := range sum.DataPoints {
		found[p.Attributes.Encoded(attribute.DefaultEncoder())] = p.Value
	}
	return found
}

// Two limiters are observed beside each other, until they are unregistered.
func TestObserve(t *testing.T) {
	var storeTime otellimit.StoreTime
	reader := metric.NewManualReader(metric.WithProducer(&storeTime))
	options := otellimit.Options{MeterProvider: metric.NewMeterProvider(metric.WithReader(reader)), StoreTime: &storeTime}
	first, second := extensiontest.NewLimiter(t, core.Options{}), extensiontest.NewLimiter(t, noRedis(t))
	set, err := second.RuleSet(core.Rule{Name: "api", Seconds: 60})
	if err != nil {
		t.Fatal(err)
	}
	set.MustGuard("api")
	if _, err := otellimit.Observe(first, options); err != nil {
		t.Fatal(err)
	}
	options.Name = "second"
	registration, err := otellimit.Observe(second, options)
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		_, _ = first.MustCounter("reply", core.PerHour(2)).Allow(context.Background(), "user:alice")
	}
	_, _ = second.MustCounter("reply", core.PerHour(2)).WithStorePolicy(core.FailOpen).Allow(context.Background(), "user:alice")

	found := collect(t, reader)
	wantNames(t, found, 19)
	calls := points(found["accesslimit.calls"])
	for attributes, want := range map[string]int64{
		"accesslimit.limiter=default,accesslimit.reason=allowed,accesslimit.rule=reply,accesslimit.source=memory":        2,
		"accesslimit.limiter=default,accesslimit.reason=limit_exceeded,accesslimit.rule=reply,accesslimit.source=memory": 1,
		"accesslimit.limiter=second,accesslimit.reason=store_fail_open,accesslimit.rule=reply,accesslimit.source=none":   1,
	} {
		if calls[attributes] != want {
			t.Errorf("%s is %d, want %d, in %v", attributes, calls[attributes], want, calls)
		}
	}
	if near := points(found["accesslimit.near_limit"]); near["accesslimit.limiter=default,accesslimit.rule=reply,accesslimit.source=memory"] != 1 {
		t.Errorf("near the limit are %v", near)
	}
	if states := points(found["accesslimit.breaker.state"]); states["accesslimit.limiter=second,accesslimit.state=closed,server.address=127.0.0.1,server.port=1"] != 1 || len(states) != 3 {
		t.Errorf("the breakers are %v", states)
	}
	times, _ := found["accesslimit.store.duration"].Data.(metricdata.Histogram[float64])
	if len(times.DataPoints) != 1 || times.DataPoints[0].Count != 1 || len(times.DataPoints[0].BucketCounts) != len(times.DataPoints[0].Bounds)+1 {
		t.Errorf("the store time is %+v", times)
	}

	if err := registration.Unregister(); err != nil {
		t.Error(err)
	}
	found = collect(t, reader)
	if n := len(points(found["accesslimit.calls"])); n != 2 || found["accesslimit.store.duration"].Data != nil {
		t.Errorf("%d calls of the limiter that is left, and %+v", n, found["accesslimit.store.duration"])
	}
}

// wantNames checks names and units by the semantic conventions: lower case with dots, no unit and
// no "total" in a name, and a unit unless it is a state.
func wantNames(t *testing.T, found map[string]metricdata.Metrics, n int) {
	t.Helper()
	good, unit := regexp.MustCompile(`^accesslimit(\.[a-z]+(_[a-z]+)*)+$`), regexp.MustCompile(`^(s|\{[a-z]+\})$`)
	for name, m := range found {
		isState := strings.HasPrefix(name, "accesslimit.rules.") && m.Unit == ""
		if !good.MatchString(name) || regexp.MustCompile(`total|seconds`).MatchString(name) || !unit.MatchString(m.Unit) && !isState || m.Description == "" {
			t.Errorf("%q has the unit %q and the description %q", name, m.Unit, m.Description)
		}
		if text := fmt.Sprintf("%+v", m.Data); strings.Contains(text, "alice") {
			t.Errorf("%s shows a subject: %s", name, text)
		}
	}
	if len(found) != n {
		t.Errorf("there are %d metrics: %v", len(found), found)
	}
}

func TestObserveNothing(t *testing.T) {
	if _, err := otellimit.Observe(nil, otellimit.Options{}); err == nil {
		t.Error("nil is observed")
	}
	if _, err := otellimit.Observe(extensiontest.NewLimiter(t, core.Options{}), otellimit.Options{}); err != nil {
		t.Errorf("without a MeterProvider: %v", err)
	}
}

// A decision sets attributes of the span that is in progress, and begins none.
func TestSetAttributes(t *testing.T) {
	recorder := tracetest.NewSpanRecorder()
	tracer := trace.NewTracerProvider(trace.WithSpanProcessor(recorder)).Tracer("test")
	limiter := extensiontest.NewLimiter(t, core.Options{OnDecision: otellimit.SetAttributes})
	options := noRedis(t)
	options.OnDecision = otellimit.SetAttributes
	dead := extensiontest.NewLimiter(t, options).MustCounter("dead", core.PerHour(1)).WithStorePolicy(core.FailOpen)
	once := limiter.MustCounter("once\xff", core.PerHour(1))
	_, _ = once.Allow(context.Background(), "user:alice") // without a span
	tried, api := core.Rule{Name: "tried", Seconds: 3600, MaxCount: 1, Mode: core.DryRun}, core.Rule{Name: "api", Seconds: 3600, MaxCount: 1}
	served := nethttplimit.New(limiter, tried)(nethttplimit.New(limiter, api)(http.NotFoundHandler()))
	served.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("GET", "/x", nil))
	for name, test := range map[string]struct {
		call func(ctx context.Context)
		want string
	}{
		"allowed": {func(ctx context.Context) { _, _ = limiter.MustCounter("n", core.PerHour(5)).Allow(ctx, "user:alice") },
			"[accesslimit.rule=n accesslimit.reason=allowed accesslimit.source=memory accesslimit.allowed=true accesslimit.remaining=4]"},
		"refused": {func(ctx context.Context) { _, _ = once.Allow(ctx, "user:alice") },
			"[accesslimit.rule=once\uFFFD accesslimit.reason=limit_exceeded accesslimit.source=memory accesslimit.allowed=false accesslimit.remaining=0 accesslimit.retry_after=]"},
		"unlimited": {func(ctx context.Context) { _, _ = limiter.MustCounter("u", core.Unlimited).Allow(ctx, "user:alice") },
			"[accesslimit.rule=u accesslimit.reason=allowed accesslimit.source=none accesslimit.allowed=true]"},
		"failing open": {func(ctx context.Context) { _, _ = dead.Allow(ctx, "user:alice") },
			"[accesslimit.rule=dead accesslimit.reason=store_fail_open accesslimit.source=none accesslimit.allowed=true]"},
		"a middleware": {func(ctx context.Context) {
			served.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("GET", "/x", nil).WithContext(ctx))
		}, "[accesslimit.dry_run.rule=tried accesslimit.rule=api accesslimit.reason=limit_exceeded accesslimit.source=memory accesslimit.allowed=false accesslimit.remaining=0 accesslimit.retry_after=]"},
		"a dry run": {func(ctx context.Context) {
			otellimit.SetAttributes(ctx, core.Event{DryRun: true, Decision: core.Decision{Reason: core.DryRunExceeded, Rule: "/tried\xff"}}) // a gRPC caller made up the route
		}, "[accesslimit.dry_run.rule=/tried\uFFFD]"},
	} {
		t.Run(name, func(t *testing.T) {
			before := len(recorder.Ended())
			ctx, span := tracer.Start(context.Background(), "call")
			test.call(ctx)
			span.End()
			spans := recorder.Ended()[before:]
			if len(spans) != 1 || len(spans[0].Events()) != 0 {
				t.Fatalf("%d spans", len(spans))
			}
			var set []string
			for _, a := range spans[0].Attributes() {
				text := string(a.Key) + "="
				if a.Key != "accesslimit.retry_after" { // the time decides how long it is
					text += a.Value.String()
				} else if wait := a.Value.AsFloat64(); wait <= 0 || wait > 4000 {
					t.Errorf("the wait is %v s", wait)
				}
				set = append(set, text)
			}
			if got := fmt.Sprint(set); got != test.want {
				t.Errorf("%s, want %s", got, test.want)
			}
		})
	}
}
