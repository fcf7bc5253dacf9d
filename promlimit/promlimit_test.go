package promlimit_test

import (
	"context"
	"strings"
	"sync"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
	"github.com/redis/go-redis/v9"

	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/internal/extensiontest"
	"github.com/accesslimit/accesslimit/internal/extensiontest/metered"
	"github.com/accesslimit/accesslimit/promlimit"
)

// values returns what a registry shows, by the metric and its labels.
func values(t *testing.T, registry *prometheus.Registry) map[string]float64 {
	t.Helper()
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	found := make(map[string]float64)
	for _, family := range families {
		for _, m := range family.Metric {
			name := family.GetName()
			for _, label := range m.Label {
				name += " " + label.GetName() + "=" + label.GetValue()
			}
			found[name] = m.GetCounter().GetValue() + m.GetGauge().GetValue() + m.GetHistogram().GetSampleSum()
		}
	}
	return found
}

// Two limiters of a process are shown beside each other. Without names, the registry refuses the
// second one.
func TestTwoLimiters(t *testing.T) {
	registry := prometheus.NewPedanticRegistry()
	first, second := extensiontest.NewLimiter(t, core.Options{}), extensiontest.NewLimiter(t, core.Options{})
	registry.MustRegister(promlimit.NewCollector(first, promlimit.Options{}))
	if err := registry.Register(promlimit.NewCollector(second, promlimit.Options{})); err == nil {
		t.Error("two limiters have one name")
	}
	registry.MustRegister(promlimit.NewCollector(second, promlimit.Options{Name: "second"}))
	for range 3 {
		_, _ = first.MustCounter("reply", core.PerHour(2)).Allow(context.Background(), "user:alice")
	}
	_, _ = second.MustCounter("reply", core.PerHour(1)).Allow(context.Background(), "user:bob")
	found := values(t, registry)
	for name, want := range map[string]float64{
		"accesslimit_calls_total limiter=default reason=allowed rule=reply source=memory":        2,
		"accesslimit_calls_total limiter=default reason=limit_exceeded rule=reply source=memory": 1,
		"accesslimit_calls_total limiter=second reason=allowed rule=reply source=memory":         1,
		"accesslimit_near_limit_total limiter=default rule=reply source=memory":                  1,
		"accesslimit_keys limiter=default":                                                       1,
	} {
		if got, ok := found[name]; got != want || !ok {
			t.Errorf("%s is %v, want %v, in %v", name, got, want, found)
		}
	}
	for name := range found {
		if strings.Contains(name, "alice") || strings.Contains(name, "_store_") || strings.Contains(name, "_breaker_") {
			t.Errorf("there is %s", name)
		}
	}
}

// The names follow Prometheus's conventions, and scrapes may happen at any time.
func TestNamesAndConcurrentScrapes(t *testing.T) {
	dead := redis.NewClient(&redis.Options{Addr: "127.0.0.1:1", DialerRetries: 1})
	defer dead.Close()
	limiter, registry := extensiontest.NewLimiter(t, core.Options{Redis: dead}), prometheus.NewPedanticRegistry()
	set, err := limiter.RuleSet(core.Rule{Name: "api", Seconds: 60})
	if err != nil {
		t.Fatal(err)
	}
	set.MustGuard("api")
	if err := set.Replace("\xff", core.Rule{Name: "api", Seconds: 60}); err != nil { // any text may be a version
		t.Fatal(err)
	}
	registry.MustRegister(promlimit.NewCollector(limiter, promlimit.Options{}))
	replies := limiter.MustCounter("reply", core.PerHour(2)).WithStorePolicy(core.FailOpen)
	var running sync.WaitGroup
	for range 4 {
		running.Go(func() {
			for range 20 {
				_, _ = replies.Allow(context.Background(), "user:alice")
				if _, err := registry.Gather(); err != nil {
					t.Error(err)
				}
			}
		})
	}
	running.Wait()
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	problems, err := promlint.NewWithMetricFamilies(families).Lint()
	if len(problems) > 0 || err != nil {
		t.Errorf("%v, %v", problems, err)
	}
	found := values(t, registry)
	for _, name := range []string{
		"accesslimit_breaker_opened_total limiter=default server_address=127.0.0.1 server_port=1",
		"accesslimit_decisions_total limiter=default reason=store_fail_open rule=reply source=none",
		"accesslimit_rules_failed limiter=default set=1", "accesslimit_rules_info digest=\uFFFD document= limiter=default set=1 version=\uFFFD", "accesslimit_rules_unread limiter=default set=1", "accesslimit_rules_lost limiter=default set=1", "accesslimit_rules_fallback limiter=default set=1",
		"accesslimit_store_duration_seconds limiter=default", "accesslimit_store_errors_total error_type=unreachable limiter=default",
	} {
		if _, ok := found[name]; !ok {
			t.Errorf("there is no %s in %v", name, found)
		}
	}
	if since := found["accesslimit_rules_loaded_timestamp_seconds limiter=default set=1"]; since < 1e9 {
		t.Errorf("the rules were loaded at %v", since)
	}
}

// Costs that are known afterwards have metrics, and so have dry runs, and calls that go out: refusals by a server are
// not among the decisions of this service.
func TestCostsAndCallsThatGoOut(t *testing.T) {
	limiter, registry := extensiontest.NewLimiter(t, core.Options{}), prometheus.NewPedanticRegistry()
	registry.MustRegister(promlimit.NewCollector(limiter, promlimit.Options{}))
	metered.Spend(t, limiter, "tenant:acme")
	metered.GoOut(t, limiter, "api", "host")
	metered.Try(limiter)
	found := values(t, registry)
	for name, want := range map[string]float64{
		"bills_opened_total": 2, "bills_settled_total": 1, "bills_unknown_total": 0, "bills_estimated_permits_total": 8,
		"bills_settled_estimated_permits_total": 4, "bills_used_permits_total": 6, "debt_exceeded_permits_total": 5,
		"dry_run_decided_total": 3, "dry_run_dropped_total": 0, "dry_run_delay_seconds_total": 0,
		"outgoing_refusals_total": 1, "outgoing_pauses_total": 1, "outgoing_waits_total": 0, "outgoing_wait_seconds_total": 0, "outgoing_waiting": 0,
	} {
		rule := "tokens"
		if strings.HasPrefix(name, "outgoing") {
			rule = "api"
		} else if strings.HasPrefix(name, "dry_run") {
			rule = "tried"
		}
		if got, ok := found["accesslimit_"+name+" limiter=default rule="+rule]; got != want || !ok {
			t.Errorf("%s is %v, want %v, in %v", name, got, want, found)
		}
	}
	if n := found["accesslimit_decisions_total limiter=default reason=banned rule=api source=memory"]; n != 1 {
		t.Errorf("%v calls were not sent, want 1", n)
	}
	if n, ok := found["accesslimit_dry_run_refused_already_total limiter=default rule=tried source=memory"], found["accesslimit_dry_run_now limiter=default"] == 0; n != 1 || !ok {
		t.Errorf("%v calls were refused already, want 1", n)
	}
	families, _ := registry.Gather()
	if problems, err := promlint.NewWithMetricFamilies(families).Lint(); len(problems) > 0 || err != nil {
		t.Errorf("%v, %v", problems, err)
	}
}
