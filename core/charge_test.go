package core_test

import (
	"errors"
	"math"
	"testing"
	"time"

	"github.com/accesslimit/accesslimit/core"
)

// A cost that is charged afterwards ends what the process remembers of its counters, in either order.
func TestChargeEndsRememberedRefusals(t *testing.T) {
	onBothEngines(t, func(t *testing.T, options core.Options, _ core.Source) {
		limiter := newLimiter(t, options)
		tokens := limiter.MustCounter("tokens", core.PerHour(10), core.PerDay(100))
		allow := func() (d core.Decision) {
			t.Helper()
			d, err := tokens.Allow(background, "s")
			if err != nil {
				t.Fatal(err)
			}
			return d
		}
		if d, err := tokens.Charge(background, "s", 10); err != nil || !d.Allowed || d.Remaining != 0 || len(d.All) != 2 {
			t.Fatalf("%+v, %v", d, err)
		}
		if d := allow(); d.Allowed || d.Limit != core.PerHour(10) {
			t.Errorf("used up, and allowed: %+v", d)
		}
		if d, err := tokens.Charge(background, "s", 10); err != nil || d.Remaining != 0 {
			t.Errorf("a charge after a refusal: %+v, %v", d, err)
		}
		if d := allow(); d.Allowed || d.Source == core.FromDenyCache {
			t.Errorf("in debt, and the refusal before is repeated: %+v", d)
		}
		d, err := tokens.Charge(background, "s", 7)
		if !errors.Is(err, core.ErrDebtExceeded) || !d.Allowed {
			t.Errorf("above the debt of one limit: %+v, %v", d, err)
		}
		if left := d.All[1].Remaining; left != 73 {
			t.Errorf("%d of 100 left of the other limit, want 73", left)
		}
		if n := limiter.Stats().DebtExceeded; n != 7 {
			t.Errorf("%d exceeded", n)
		}
		if err := limiter.Refund(background, d, 7); err != nil {
			t.Errorf("a refund: %v", err)
		}
		if d, err := tokens.Peek(background, "s"); err != nil || d.Allowed || d.All[1].Remaining != 80 {
			t.Errorf("after a refund of what one limit charged: %+v, %v", d, err)
		}
	})
}

// A charge obeys overrides, plans and limits of With, as other calls do. It is refused only if the
// subject is blocked.
func TestChargeObeysOverridesAndPlans(t *testing.T) {
	onBothEngines(t, func(t *testing.T, options core.Options, _ core.Source) {
		limiter := newLimiter(t, options)
		tokens := limiter.MustCounter("tokens", core.PerHour(10), core.PerDay(1000)).WithOverrides()
		o := operator{t, limiter, "tokens", core.PerHour(10)}
		charge := func(c core.Counter, n int) (core.Decision, error) { return c.Charge(background, "s", n) }
		o.max("s", 20)
		if d, err := charge(tokens, 40); err != nil || d.Limit != core.PerHour(20) || d.Remaining != 0 {
			t.Errorf("override: %+v, %v", d, err)
		}
		if _, err := charge(tokens, 1); !errors.Is(err, core.ErrDebtExceeded) {
			t.Errorf("the debt is not bounded by the override's number: %v", err)
		}
		o.lift("s")
		if d, err := charge(tokens, math.MaxInt); err != nil || d.Limit != core.Unlimited || !d.Allowed {
			t.Errorf("lifted: %+v, %v", d, err)
		}
		o.block("s", time.Time{})
		if d, err := charge(tokens, 1); err != nil || d.Allowed || d.Reason != core.Blocked {
			t.Errorf("blocked: %+v, %v", d, err)
		}
		plain := limiter.MustCounter("plain", core.PerHour(10))
		if d, err := charge(plain.With(core.PerHour(3)), 5); err != nil || d.Limit != core.PerHour(3) {
			t.Errorf("With: %+v, %v", d, err)
		}
		if d, err := charge(plain.With(core.Unlimited), 5); err != nil || d.Limit != core.Unlimited {
			t.Errorf("Unlimited: %+v, %v", d, err)
		}
	})
}

// A charge of nothing changes nothing, and the largest one is bounded.
func TestExtremeCharges(t *testing.T) {
	onBothEngines(t, func(t *testing.T, options core.Options, _ core.Source) {
		limiter := newLimiter(t, options)
		tokens := limiter.MustCounter("tokens", core.PerHour(10))
		if d, err := tokens.Charge(background, "s", 0); err != nil || d.Remaining != 10 || !d.Allowed {
			t.Errorf("nothing: %+v, %v", d, err)
		}
		if d, err := tokens.Charge(background, "s", math.MaxInt); !errors.Is(err, core.ErrDebtExceeded) || d.Remaining != 0 {
			t.Errorf("the largest cost: %+v, %v", d, err)
		}
		if n := limiter.Stats().DebtExceeded; n != min(1<<40, math.MaxInt-20) { // 2^40 is the most that one call adds
			t.Errorf("%d exceeded", n)
		}
	})
}

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

func isWrong(err error) bool {
	var wrong *core.RuleError
	return errors.As(err, &wrong)
}
