package promise

import (
	"context"
	"errors"
	"math"
	"sync/atomic"
	"testing"
	"time"

	"github.com/accesslimit/accesslimit/core"
)

// DebtIsBounded: a cost that is known afterwards is charged even if it does not fit. What does not fit
// is waited off by later calls, and however many processes charge, the debt stays within its bound.
func DebtIsBounded(t *testing.T, e Engine) {
	e.newLab(t).eachLimit(t, "is waited off", func(c counter, f facts) {
		if f.debts {
			c.waitsOffDebt(f)
		} else if _, err := c.owe(1); !isRuleError(err) {
			t.Errorf("%v, want a RuleError", err)
		}
	})
	eachAlgorithm(t, func(t *testing.T, f facts) {
		if f.debts {
			boundedTogether(t, e.limiters(t, 3), f)
		}
	})
}

// owe charges n permits whether they fit or not.
func (c counter) owe(n int) (core.Decision, error) {
	return c.limiter.MustCounter(c.name, c.limit).Charge(context.Background(), c.subject, n)
}

// waitsOffDebt charges a limit and a half. Then a call passes after its RetryAfter, and not earlier.
func (c counter) waitsOffDebt(f facts) {
	most := atOnce(c.limit)
	c.mustTake(1)
	n := int(min(int64(most)+int64(most-1)/2, 1<<40-2, math.MaxInt)) // the largest limit has room for a smaller debt
	if d, err := c.owe(n); err != nil || !d.Allowed || d.Remaining != max(0, most-1-n) {
		c.t.Fatalf("%+v, %v", d, err)
	}
	c.limiter = c.another()
	if d := c.take(1); !d.Allowed {
		told, slack := d.RetryAfter, f.slack(c.limit)
		time.Sleep(max(0, told-slack-time.Microsecond))
		c.limiter = c.another()
		if early := c.take(1); early.Allowed && told > slack {
			c.t.Errorf("passes before %v are over", told)
		}
		time.Sleep(slack + time.Microsecond)
	}
	c.limiter = c.another()
	c.mustTake(1)
}

// boundedTogether has three processes take and owe permits at once: exactly a limit and its debt are
// charged, and what exceeds that is reported.
func boundedTogether(t *testing.T, limiters []*core.Limiter, f facts) {
	limit := f.lasting(100)
	var taken, owed, above atomic.Int64
	together(30, func(i int) {
		c := counter{t: t, limiter: limiters[i%3], name: "name", subject: "subject", limit: limit}
		for range 4 {
			d, err := c.limiter.MustCounter(c.name, limit).Allow(context.Background(), c.subject)
			if err != nil {
				t.Error(err)
			} else if d.Allowed {
				taken.Add(1)
			}
			switch _, err := c.owe(3); {
			case errors.Is(err, core.ErrDebtExceeded):
				above.Add(1)
			case err != nil:
				t.Error(err)
			}
			owed.Add(3)
		}
	})
	if total := taken.Load() + owed.Load() - int64(exceeded(limiters)); total != 200 || above.Load() == 0 {
		t.Errorf("%d taken and %d owed, of which %d exceed the bound: %d charged, want 200", taken.Load(), owed.Load(), exceeded(limiters), total)
	}
}

// exceeded returns how much exceeded the bound of debts, in all of these processes.
func exceeded(limiters []*core.Limiter) (sum int) {
	for i, limiter := range limiters {
		if i == 0 || limiter != limiters[0] {
			sum += int(limiter.Stats().DebtExceeded)
		}
	}
	return sum
}

func isRuleError(err error) bool {
	var wrong *core.RuleError
	return errors.As(err, &wrong)
}
