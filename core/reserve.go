package core

import (
	"context"
	"fmt"
	"time"

	"github.com/accesslimit/accesslimit/core/internal/algorithm"
)

// longestWait is how long Acquire waits for its turn at most, without a deadline of the context's own.
const longestWait = time.Minute

// Acquire takes n permits of a TokenBucket and waits for their turn: until the context's deadline, or for one minute when it has
// none. When the turn would come later, it returns at once, refused and uncharged, with the wait that is too long by
// RetryAfter, and no error:
//
//	d, err := limiter.Acquire(ctx, "mail", "provider", core.PerSecond(10).Bucket(20), 1)
//	if err != nil || !d.Allowed {
//		return // no permit
//	}
//
// Callers take turns in the order in which Redis hears of them, across all processes. A turn comes when one permit is there; a
// large n is granted then at once, and who comes next waits until the rest has come back, too. n is at most ten times the
// limit's Max, or its Burst where that is more; beyond that it is ErrCostExceedsLimit. (The reservations of RFC 2697's
// token bucket with debts, as in Guava's SmoothRateLimiter.)
//
// When the context ends while it waits, the error is the context's, and what nobody has reserved behind it is given back in the
// background. Other errors are those of Allow; a limit that is no TokenBucket is a *RuleError.
func (l *Limiter) Acquire(ctx context.Context, name, subject string, limit Limit, n int) (Decision, error) {
	patience := longestWait
	if deadline, ok := ctx.Deadline(); ok {
		patience = time.Until(deadline)
	}
	return l.TryAcquire(ctx, name, subject, limit, n, patience)
}

// TryAcquire is Acquire that waits at most so long for its turn, and never beyond the context's deadline.
func (l *Limiter) TryAcquire(ctx context.Context, name, subject string, limit Limit, n int, patience time.Duration) (Decision, error) {
	if deadline, ok := ctx.Deadline(); ok {
		patience = min(patience, time.Until(deadline))
	}
	d, err := l.reserve(ctx, name, subject, limit, n, max(0, patience))
	wait := d.Wait
	d.Wait = 0 // it is over when this returns
	if err != nil || !d.Allowed || wait == 0 {
		return d, err
	}
	turn := time.NewTimer(wait)
	defer turn.Stop()
	select {
	case <-turn.C:
		return d, nil
	case <-ctx.Done():
		d = d.clone()
		l.store.InBackground(func() { _ = l.Refund(context.Background(), d, n) })
		return Decision{}, ctx.Err()
	}
}

// Reserve takes n permits of a TokenBucket for a later turn, and says in the Decision's Wait when that is, without waiting: any
// time up to 366 days away, because the context is for the asking alone. What comes too late for the caller, or is not needed
// any more, is given back with Refund. n and errors are as for Acquire; with ErrStore, or when the context ended meanwhile, the
// permits may be reserved all the same.
func (l *Limiter) Reserve(ctx context.Context, name, subject string, limit Limit, n int) (Decision, error) {
	const anyTime = algorithm.MaxWindow * time.Microsecond
	return l.reserve(ctx, name, subject, limit, n, anyTime)
}

func (l *Limiter) reserve(ctx context.Context, name, subject string, limit Limit, n int, patience time.Duration) (d Decision, err error) {
	q := question{name: name, subject: subject, n: n, charge: true}
	if limit.unlimited() {
		err = l.unlimited(ctx, &d, &q)
		return d, err
	}
	c := l.directs.Get().(*directCall)
	err = c.reserve(ctx, &d, &limit, &q, patience)
	c.done()
	if err == nil {
		l.hearDirect(ctx, &d, func() { _ = l.Refund(context.Background(), d, n) })
	}
	return d, err
}

func (c *directCall) reserve(ctx context.Context, d *Decision, limit *Limit, q *question, patience time.Duration) error {
	if err := c.prepare(limit, q); err != nil {
		return err
	}
	if limit.Algorithm != TokenBucket {
		return &RuleError{Rule: q.name, Field: "Algorithm", Value: limit.Algorithm, Why: "cannot be waited for: use TokenBucket"}
	}
	if q.n < 1 {
		return &RuleError{Rule: q.name, Field: "n", Value: q.n, Why: "must be positive"}
	}
	if most := c.last.compiled.Reserved; int64(q.n) > most {
		return fmt.Errorf("%w: %d of %v, from which %d can be reserved", ErrCostExceedsLimit, q.n, *limit, most)
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	c.verdict[0] = c.limiter.store.Reserve(ctx, &c.counter[0], patience.Microseconds())
	return c.answer(d, q)
}
