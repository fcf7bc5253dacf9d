package core_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/internal/redistest"
)

// leaseRule lets 3200 calls an hour through, of which a process may take a hundred in one trip.
func leaseRule() core.Rule {
	return core.Rule{Name: "n", Seconds: 3600, MaxCount: 3200, Lease: 100}
}

// heardOf returns a limiter on a Redis, and the decisions that it makes.
func heardOf(t *testing.T, server *redistest.Server, prefix string) (*core.Limiter, *decisions) {
	heard := new(decisions)
	return newLimiter(t, core.Options{Redis: server.Client(t), Prefix: prefix, Timeout: patient, OnDecision: heard.note}), heard
}

// These rules ask Redis each time, with or without a Lease.
func TestRulesThatAreNotLeased(t *testing.T) {
	server := redistest.Start(t)
	other := core.Rule{Name: "other", Seconds: 60, MaxCount: 3200, Key: core.Global}
	change := func(do func(*core.Rule)) []core.Rule {
		rule := leaseRule()
		do(&rule)
		return []core.Rule{rule}
	}
	for name, rules := range map[string][]core.Rule{
		"without Lease": change(func(r *core.Rule) { r.Lease = 0 }),
		"with Also":     change(func(r *core.Rule) { r.Also = []core.Limit{core.PerDay(5000)} }),
		"with Ban":      change(func(r *core.Rule) { r.Ban = core.Ban{ByHand: true} }),
		"in DryRun":     change(func(r *core.Rule) { r.Mode = core.DryRun }),
		"a plan of another algorithm": change(func(r *core.Rule) {
			r.LimitFor = func(core.Request) (core.Limit, error) { return core.PerHour(3200).Bucket(3200), nil }
		}),
		"two rules": {leaseRule(), other},
	} {
		t.Run(name, func(t *testing.T) {
			limiter, heard := heardOf(t, server, fmt.Sprint("test", len(name)))
			guard := newGuard(t, limiter, rules...)
			for range 30 {
				wantStatus(t, guard, newView("GET", "/"), 200)
			}
			if n := heard.bySource()[core.FromLease]; n > 0 {
				t.Errorf("%d calls were leased", n)
			}
		})
	}
}

// A plan with an algorithm that leases is leased. So is a call with a cost, for which each permit
// counts.
func TestLeasedPlansAndCosts(t *testing.T) {
	limiter, heard := heardOf(t, redistest.Start(t), "test")
	plan := core.Limit{Max: 9600, Window: time.Hour, Algorithm: core.FixedWindow}
	rule := leaseRule()
	rule.LimitFor, rule.Cost = func(core.Request) (core.Limit, error) { return plan, nil }, cost(3)
	guard := newGuard(t, limiter, rule)
	for range 200 {
		wantStatus(t, guard, newView("GET", "/"), 200)
	}
	if heard.bySource()[core.FromLease] < 100 {
		t.Errorf("200 calls were decided by %v", heard.bySource())
	}
	limiter.Close()
	wantLeft(t, limiter, "n", me, plan, 9600-600)
}

// A Reset in this process drops the lease. All permits of the limit are there again, and no more.
func TestResetOfALeasedCounter(t *testing.T) {
	limiter, _ := heardOf(t, redistest.Start(t), "test")
	guard := newGuard(t, limiter, leaseRule())
	for range 100 {
		wantStatus(t, guard, newView("GET", "/"), 200)
	}
	if _, err := resetOf(limiter, background, "n", me, core.PerHour(3200)); err != nil {
		t.Fatal(err)
	}
	for range 3200 {
		wantStatus(t, guard, newView("GET", "/"), 200)
	}
	wantStatus(t, guard, newView("GET", "/"), 429)
}
