package core_test

import (
	"errors"
	"testing"
	"time"

	"github.com/accesslimit/accesslimit/core"
)

func done() (status int) { return 200 }

// A charge that a handler refunded by its decision is not given back once more when the outcome
// does not count.
func TestRefundAndCountGiveBackOnce(t *testing.T) {
	onBothEngines(t, func(t *testing.T, options core.Options, _ core.Source) {
		options.Expose = true
		limiter := newLimiter(t, options)
		guard := newGuard(t, limiter, core.Rule{
			Name:  "n",
			Limit: core.PerHour(4).Fixed(),
			Cost:  func(core.Request) int { return 2 },
			Count: func(status int) bool { return status == 200 },
		})
		limit := core.Limit{Max: 4, Window: time.Hour, Algorithm: core.FixedWindow}
		wantStatus(t, guard, newView("GET", "/"), 200).Run(done)
		answer := wantStatus(t, guard, newView("GET", "/"), 200)
		answer.Run(func() int {
			d, _ := core.DecisionFrom(answer.Context)
			refund(t, limiter, d, 1)
			return 500
		})
		wantLeft(t, limiter, "n", me, limit, 2)
	})
}

// A decision can be refunded by the limiter that made it, and by no other with the same counters.
func TestRefundByAnotherLimiter(t *testing.T) {
	one, two := newLimiter(t, core.Options{}), newLimiter(t, core.Options{})
	mine, err := one.MustCounter("n", core.PerHour(2)).Allow(background, "s")
	if err != nil {
		t.Fatal(err)
	}
	charge(t, two, "n", "s", core.PerHour(2), 1)
	var wrong *core.RuleError
	if err := two.Refund(background, mine, 1); !errors.As(err, &wrong) || wrong.Field != "decision" {
		t.Errorf("another limiter refunds it: %v", err)
	}
	wantLeft(t, two, "n", "s", core.PerHour(2), 1)
	refund(t, one, mine, 1)
}
