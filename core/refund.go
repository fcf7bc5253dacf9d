package core

import (
	"context"

	"github.com/accesslimit/accesslimit/core/internal/abandoned"
	"github.com/accesslimit/accesslimit/core/internal/algorithm"
	"github.com/accesslimit/accesslimit/core/internal/rediskey"
	"github.com/accesslimit/accesslimit/core/internal/refund"
)

// Refund gives back n permits that a decision charged, as far as they still count: permits that
// have come back by themselves, or whose window is over, are not given back again. If there are
// several limits, each gets n back.
//
// A TokenBucket gives back the oldest permits in use, so less may come back if charges that were made
// later were given back before. While callers wait for turns, only the last turn comes back, and only
// whole; the others follow when all those behind them have come back. When the store's clock steps back,
// the permits in use in a window count as used at that time, and can no longer be given back.
// Stats.RefundsLost counts the difference.
//
// It is no error if nothing of the charge counts any more, because its window is over, or after a
// Reset.
//
// Giving back more than was charged, at once or in several steps, is a *[RuleError]. So is giving
// back a decision of another Limiter, or one that charged nothing. The limiter remembers the
// amounts for the 65,536 decisions that were refunded last. A refund that ends in ErrStore may or
// may not have been carried out, and cannot be tried again. Other errors are those of [Counter].
func (l *Limiter) Refund(ctx context.Context, d Decision, n int) error {
	f := l.front()
	if f == nil {
		return errNoLimiter
	}
	return f.refund(ctx, d, n)
}

// refund is [Limiter.Refund].
func (f *front) refund(ctx context.Context, d Decision, n int) error {
	if n < 1 {
		return wrongArgument(d.Rule, "n", n, "must be positive")
	}
	var parts []refund.Part
	for _, d := range d.each() {
		switch r := &d.receipt; {
		case r.Cost == 0:
		case !r.Of(f.refunds):
			return wrongArgument(d.Rule, "decision", d.Key, "is one of another Limiter, which alone can refund it")
		default:
			key := rediskey.AppendLimit(nil, f.KeyHead, d.Key, d.Rule, r.DryRun, r.Limit)
			parts = append(parts, refund.Part{Receipt: *r, Key: key})
		}
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	charges, why := f.refunds.Take(parts, int64(n))
	if why != "" {
		return wrongArgument(d.Rule, "n", n, why)
	}
	var err error
	if d.receipt.Turn {
		err = f.Unused.Refund(ctx, abandoned.Turn{Charge: charges[0], Counts: d.ResetAfter})
	} else {
		err = f.Store.Change(ctx, &algorithm.Change{Charges: charges})
	}
	return f.failures.errorOf(d.Rule, err)
}
