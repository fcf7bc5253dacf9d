package promise

import (
	"context"
	"time"

	"github.com/accesslimit/accesslimit/core"
)

// settledLate settles calls of a middleware when everything that their estimates took has come back: nothing is
// given back a second time, and more than the estimate is charged then.
func (c counter) settledLate(f facts) {
	most, over := atOnce(c.limit), f.full(c.limit)+f.lives(c.limit)
	c.handle(1, func(settle func(used int)) {
		time.Sleep(over)
		c.mustTake(most)
		settle(0)
		c.limiter = c.another()
		c.mustRefuse(1)
	})
	time.Sleep(over)
	c.handle(1, func(settle func(used int)) {
		time.Sleep(over)
		settle(most)
		c.wantLeft(1)
	})
}

// handle makes a call with an estimate, whose handler may settle it.
func (c counter) handle(estimate int, handle func(settle func(used int))) {
	c.t.Helper()
	rule := core.Rule{Name: c.name, Limit: c.limit, Estimate: func(core.Request) int { return estimate }}
	rule.Key = func(core.Request) (string, error) { return c.subject, nil }
	answer := c.limiter.MustGuard(rule).Check(callBy(context.Background(), "anyone"))
	if answer.Refusal != nil {
		c.t.Fatalf("%v: %+v", c.limit, answer.Refusal)
	}
	answer.Run(func() int {
		handle(func(used int) {
			if err := core.Settle(answer.Context, core.Costs{c.name: used}); err != nil {
				c.t.Errorf("%v: settled at %d: %v", c.limit, used, err)
			}
		})
		return 200
	})
}
