package otellimit_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/core/outgoing"
	"github.com/accesslimit/accesslimit/internal/extensiontest"
	"github.com/accesslimit/accesslimit/internal/extensiontest/metered"
	"github.com/accesslimit/accesslimit/otellimit"
)

// Costs that are known afterwards have metrics, and so have calls that go out: refusals by a server are
// not among the decisions of this service.
func TestCostsAndCallsThatGoOut(t *testing.T) {
	limiter, reader := extensiontest.NewLimiter(t, core.Options{}), metric.NewManualReader()
	if _, err := otellimit.Observe(limiter, otellimit.Options{MeterProvider: metric.NewMeterProvider(metric.WithReader(reader))}); err != nil {
		t.Fatal(err)
	}
	metered.Spend(t, limiter, "tenant:acme")
	metered.GoOut(t, limiter, "api", "host")
	metered.Try(limiter)
	found := collect(t, reader)
	wantNames(t, found, 22)
	for name, want := range map[string]int64{
		"decided accesslimit.limiter=default,accesslimit.rule=tried": 3, "dropped accesslimit.limiter=default,accesslimit.rule=tried": 0,
		"refused_already accesslimit.limiter=default,accesslimit.rule=tried,accesslimit.source=memory": 1, "now accesslimit.limiter=default": 0,
	} {
		name, labels, _ := strings.Cut(name, " ")
		if got, ok := points(found["accesslimit.dry_run."+name])[labels]; got != want || !ok {
			t.Errorf("%s is %d, want %d", name, got, want)
		}
	}
	const tokens, api = "accesslimit.limiter=default,accesslimit.rule=tokens", "accesslimit.limiter=default,accesslimit.rule=api"
	for name, want := range map[string]int64{
		"bills.opened": 2, "bills.settled": 1, "bills.unknown": 0, "bills.estimated_permits": 8,
		"bills.settled_estimated_permits": 4, "bills.used_permits": 6, "debt_exceeded_permits": 5,
	} {
		if got, ok := points(found["accesslimit."+name])[tokens]; got != want || !ok {
			t.Errorf("%s is %d, want %d", name, got, want)
		}
	}
	for name, want := range map[string]int64{"outgoing.refusals": 1, "outgoing.pauses": 1, "outgoing.waits": 0, "outgoing.waiting": 0} {
		if got, ok := points(found["accesslimit."+name])[api]; got != want || !ok {
			t.Errorf("%s is %d, want %d", name, got, want)
		}
	}
	if waits, _ := found["accesslimit.outgoing.wait"].Data.(metricdata.Sum[float64]); len(waits.DataPoints) != 1 || waits.DataPoints[0].Value != 0 || !waits.IsMonotonic {
		t.Errorf("the waits are %+v", waits)
	}
}

// A span tells a refusal of this service from one of the server, and keeps what it says of the call that
// came in.
func TestSpansOfCallsThatGoOut(t *testing.T) {
	recorder := tracetest.NewSpanRecorder()
	tracer := trace.NewTracerProvider(trace.WithSpanProcessor(recorder)).Tracer("test")
	turns, err := outgoing.New(extensiontest.NewLimiter(t, core.Options{OnDecision: otellimit.SetAttributes}), outgoing.Rule{Name: "api", Limit: core.PerHour(1000).Bucket(10)})
	if err != nil {
		t.Fatal(err)
	}
	call := func(a outgoing.Answer) string {
		ctx, span := tracer.Start(context.Background(), "call")
		if turn, err := turns.Take(ctx, "host"); err == nil {
			turn.Answered(a)
			turn.Release()
		}
		span.End()
		ended := recorder.Ended()
		var set []string
		for _, a := range ended[len(ended)-1].Attributes() {
			set = append(set, strings.TrimPrefix(string(a.Key), "accesslimit.outgoing.")+"="+a.Value.String())
		}
		return strings.Join(set, " ")
	}
	if got, want := call(outgoing.Answer{}), "rule=api waited=0"; got != want {
		t.Errorf("a call that was answered: %s, want %s", got, want)
	}
	if got, want := call(outgoing.Answer{Refused: true, Wait: 10 * time.Minute}), "rule=api waited=0 refused_by=server retry_after=600"; got != want {
		t.Errorf("a call that the server refused: %s, want %s", got, want)
	}
	if got, want := call(outgoing.Answer{}), "rule=api waited=0 refused_by=client reason=banned retry_after="; !strings.HasPrefix(got, want) {
		t.Errorf("a call that was not sent: %s, want %s", got, want)
	}
}
