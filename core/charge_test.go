package core_test

import (
	"testing"

	"github.com/accesslimit/accesslimit/core"
)

// The permits of a counter that a rule leases are used in advance, so there is no debt.
func TestNoDebtWithALease(t *testing.T) {
	limiter := newLimiter(t, core.Options{})
	leased := limiter.MustCounter("n", core.PerHour(10), core.PerDay(100))
	if _, err := leased.Charge(background, "s", 1); err != nil {
		t.Errorf("before there is such a rule: %v", err)
	}
	rules := []core.Rule{{Name: "n", Limit: core.PerHour(10)}, {Name: "n", Limit: core.PerHour(10), Lease: 2}, {Name: "dry", Limit: core.PerHour(10), Lease: 2, Mode: core.DryRun}}
	for _, rule := range rules {
		attach(t, limiter, rule)
	}
	_, err := leased.Charge(background, "s", 1)
	wantRuleError(t, err, "n", "Lease", "10/h")
	_, _, err = leased.With(core.PerHour(20)).Open(background, "s", 1)
	wantRuleError(t, err, "n", "Lease", "20/h")
	for _, other := range []core.Counter{limiter.MustCounter("n", core.PerDay(10)), limiter.MustCounter("dry", core.PerHour(10))} {
		if _, err := other.Charge(background, "s", 1); err != nil {
			t.Errorf("another counter: %v", err)
		}
	}
}
