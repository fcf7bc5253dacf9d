package operate_test

import (
	"errors"
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
		attach(t, limiter, core.Rule{Name: "api", Limit: core.PerDay(9), Key: core.ByUser, Overrides: true})
		spend(t, limiter.MustCounter("api", core.PerDay(9)), "user:alice", 8)
		overrides, err := operate.New(limiter).Overrides("api")
		if err == nil {
			err = overrides.Set(background, "user:alice", operate.Override{Max: 6})
		}
		if err != nil {
			t.Fatal(err)
		}
		if got := ruleOf(t, inspect(t, limiter, "user:alice"), "api").Limits[0]; got.Used != 8 || got.Remaining != 0 || got.Debt != 2 {
			t.Errorf("%+v", got)
		}
	})
}
