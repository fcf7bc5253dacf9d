package operate_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/core/operate"
)

// Inspect shows a debt, unlike a limit that is just used up, for each algorithm that can be in debt, and
// also after the limit was lowered.
func TestDebtIsShown(t *testing.T) {
	onEveryDeployment(t, func(t *testing.T, options core.Options) {
		limiter := newLimiter(t, options)
		for name, limit := range map[string]core.Limit{
			"sliding": core.PerHour(5), "fixed": core.PerHour(5).Fixed(), "calendar": core.PerCalendarMonth(5, "UTC"), "bucket": core.PerDay(5).Bucket(5),
		} {
			attach(t, limiter, core.Rule{Name: name, Limit: limit, Key: core.ByUser})
			tokens := limiter.MustCounter(name, limit)
			spend(t, tokens, "user:alice", 8)
			spend(t, tokens, "user:bob", 5)
			spend(t, tokens, "user:carol", 50)
			for subject, want := range map[string]operate.ExplainedLimit{
				"user:alice": {Used: 8, Debt: 3}, "user:bob": {Used: 5}, "user:carol": {Used: 10, Debt: 5}, "user:dave": {Remaining: 5},
			} {
				r := ruleOf(t, inspect(t, limiter, subject), name)
				if got := r.Limits[0]; got.Used != want.Used || got.Remaining != want.Remaining || got.Debt != want.Debt || r.RetryAfter > 0 != (want.Remaining == 0) {
					t.Errorf("%s of %s: %+v", name, subject, got)
				}
			}
		}
		text := inspect(t, limiter, "user:alice").String()
		if strings.Count(text, ": 8 used, 0 left, 3 in debt, passes in ") != 4 {
			t.Error(text)
		}
	})
}

// spend charges a cost that is known afterwards.
func spend(t *testing.T, tokens core.Counter, subject string, n int) {
	t.Helper()
	if _, err := tokens.Charge(background, subject, n); err != nil && !errors.Is(err, core.ErrDebtExceeded) {
		t.Fatal(err)
	}
}

// Permits that were used before an operator lowered the limit are shown like a debt.
func TestUseAboveALoweredLimitIsShown(t *testing.T) {
	onBothEngines(t, func(t *testing.T, options core.Options) {
		limiter := newLimiter(t, options)
		attach(t, limiter, core.Rule{Name: "api", Limit: core.PerDay(9), Key: core.ByUser})
		spend(t, limiter.MustCounter("api", core.PerDay(9)), "user:alice", 8)
		setOverride(t, limiter, "api", "user:alice", per(core.PerDay(6)))
		if got := ruleOf(t, inspect(t, limiter, "user:alice"), "api").Limits[0]; got.Used != 8 || got.Remaining != 0 || got.Debt != 2 {
			t.Errorf("%+v", got)
		}
	})
}

// Inspect shows what a subject owes to handles too, by all of their limits and by overrides, and says where
// they were made. A handle that counts with a rule is shown as that rule, and none of which nothing is used.
func TestDebtToHandlesIsShown(t *testing.T) {
	onEveryDeployment(t, func(t *testing.T, options core.Options) {
		limiter := newLimiter(t, options)
		tokens := limiter.MustCounter("tokens", core.PerHour(5), core.PerCalendarMonth(100, "UTC"))
		overrides, err := operate.New(limiter).Overrides("tokens")
		if err == nil {
			err = overrides.Set(background, "tenant:acme", per(core.PerHour(6), core.PerCalendarMonth(100, "UTC")))
		}
		if err != nil {
			t.Fatal(err)
		}
		bill, _, err := tokens.Open(background, "tenant:acme", 2)
		if err == nil {
			err = bill.Settle(background, 8)
		}
		if err != nil {
			t.Fatal(err)
		}
		attach(t, limiter, core.Rule{Name: "api", Limit: core.PerDay(9), Key: core.ByUser})
		spend(t, limiter.MustCounter("api", core.PerDay(9)), "tenant:acme", 3)
		limiter.MustCounter("free", core.Unlimited)
		limiter.MustCounter("jobs", core.PerHour(3))
		x := inspect(t, limiter, "tenant:acme")
		var names []string
		for _, r := range x.Rules {
			names = append(names, r.Name)
		}
		if got := strings.Join(names, " "); got != "api tokens" {
			t.Errorf("shown are %s", got)
		}
		r := ruleOf(t, x, "tokens")
		if got := limitsText(r); got != "6/h override 8+0, 100/month@UTC override 8+92" || r.Limits[0].Debt != 2 || !r.Handle || !strings.Contains(r.Place, "debt_test.go:") {
			t.Errorf("%s at %s: %+v", got, r.Place, r.Limits)
		}
		if r := ruleOf(t, x, "api"); limitsText(r) != "9/24h rule 3+6" || r.Handle {
			t.Errorf("%+v", r)
		}
	})
}

// Handles that are made in each call, with names that callers choose, are shown up to a bound.
func TestInspectManyHandles(t *testing.T) {
	limiter := newLimiter(t, core.Options{})
	for i := range 1100 {
		spend(t, limiter.MustCounter(fmt.Sprint("tokens", i), core.PerHour(5)), "tenant:acme", 1)
	}
	if n := len(inspect(t, limiter, "tenant:acme").Rules); n != 1000 {
		t.Errorf("%d handles are shown, want 1000", n)
	}
}
