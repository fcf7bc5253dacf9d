package rivals

import (
	"context"

	"github.com/accesslimit/accesslimit/core"
)

// billed is our SlidingWindow for costs that are known afterwards. Each call opens a bill at 2 permits,
// or less if the limit is small, and settles it at 1.
var billed = openBilled()

func openBilled() Redis {
	r := withHandle(Billed, core.Options{}, func(limiter *core.Limiter, limit core.Limit) (allowFunc, func(string) error) {
		counter, estimate := limiter.MustCounter("bench", limit), min(2, max(1, limit.Max/10))
		return func(ctx context.Context, subject string) (core.Decision, error) {
			bill, d, err := counter.Open(ctx, subject, estimate)
			if err == nil && d.Allowed {
				err = bill.Settle(ctx, 1)
			}
			return d, err
		}, nil
	})
	r.Costs = false
	return r
}
