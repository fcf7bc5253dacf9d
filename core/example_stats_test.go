package core_test

import (
	"context"
	"expvar"
	"fmt"

	"github.com/accesslimit/accesslimit/core"
)

// This publishes the decisions for expvar (at /debug/vars) and in the text form of Prometheus: the
// calls of each rule, and those that the rule decided.
func ExampleLimiter_Stats() {
	limiter, _ := core.New(core.Options{})
	defer limiter.Close()
	for range 3 {
		_, _ = limiter.MustCounter("reply", core.PerHour(2)).Allow(context.Background(), "user:alice")
	}

	expvar.Publish("accesslimit", expvar.Func(func() any { return limiter.Stats() }))

	for _, d := range limiter.Stats().Decisions {
		labels := fmt.Sprintf("{rule=%q,reason=%q,source=%q}", d.Rule, d.Reason, d.Source)
		fmt.Printf("accesslimit_decisions_total%s %d\n", labels, d.Count)
		fmt.Printf("accesslimit_calls_total%s %d\n", labels, d.Bound)
	}
	// Output:
	// accesslimit_decisions_total{rule="reply",reason="allowed",source="memory"} 2
	// accesslimit_calls_total{rule="reply",reason="allowed",source="memory"} 2
	// accesslimit_decisions_total{rule="reply",reason="limit_exceeded",source="memory"} 1
	// accesslimit_calls_total{rule="reply",reason="limit_exceeded",source="memory"} 1
}
