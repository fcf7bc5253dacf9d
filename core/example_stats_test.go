package core_test

import (
	"context"
	"expvar"
	"fmt"
	"os"

	"github.com/accesslimit/accesslimit/core"
)

// What was decided, for expvar (at /debug/vars) and in the text form of Prometheus.
func ExampleLimiter_Stats() {
	limiter, _ := core.New(core.Options{})
	defer limiter.Close()
	for range 3 {
		_, _ = limiter.Allow(context.Background(), "reply", "user:alice", core.PerHour(2))
	}

	expvar.Publish("accesslimit", expvar.Func(func() any { return limiter.Stats() }))

	for _, d := range limiter.Stats().Decisions {
		fmt.Fprintf(os.Stdout, "accesslimit_decisions_total{rule=%q,reason=%q,source=%q} %d\n", d.Rule, d.Reason, d.Source, d.Count)
	}
	// Output:
	// accesslimit_decisions_total{rule="reply",reason="allowed",source="memory"} 2
	// accesslimit_decisions_total{rule="reply",reason="limit_exceeded",source="memory"} 1
}
