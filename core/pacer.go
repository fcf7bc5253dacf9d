package core

import (
	"context"
	"time"

	"github.com/accesslimit/accesslimit/core/internal/abandoned"
	"github.com/accesslimit/accesslimit/core/internal/algorithm"
	"github.com/accesslimit/accesslimit/core/internal/rediskey"
	"github.com/accesslimit/accesslimit/core/internal/refund"
)

// Pacer hands out turns at a token bucket, in order across all processes. Make one with
// [Limiter.Pacer]. It is a small value, safe for concurrent use:
//
//	mails, err := limiter.Pacer("mail", core.PerSecond(10).Bucket(20))
//	...
//	d, err := mails.Acquire(ctx, "provider", 1)
//	if err != nil || !d.Allowed {
//		return // no permit
//	}
//
// Turns come in the order in which Redis receives the calls. A turn comes when one permit is there;
// a large n is granted then at once, and the next caller waits until the rest has come back too.
// (The reservations of a token bucket with debts, as in Guava's SmoothRateLimiter and in RFC 2697.)
//
// Errors are those of [Counter]. If n is more than the limit's Burst and more than ten times its
// Max, the error is [ErrCostExceedsLimit].
type Pacer struct {
	handle *handle
}

// Pacer returns a [Pacer] for a name and a limit by [TokenBucket]. The error is a *[RuleError].
func (l *Limiter) Pacer(name string, limit Limit) (Pacer, error) {
	h, err := l.front().newHandle(name, &pacerKind, limit)
	return Pacer{h}, err
}

// MustPacer is like Pacer but panics if the limit is wrong.
func (l *Limiter) MustPacer(name string, limit Limit) Pacer { return orPanic(l.Pacer(name, limit)) }

var pacerKind = handleKind{accepts: onlyBuckets, one: true}

func onlyBuckets(limit *Limit) string {
	if !limit.Algorithm.properties().Reserves {
		return "cannot be waited for: use TokenBucket, as in PerSecond(10).Bucket(20)"
	}
	return ""
}

// WithStorePolicy returns the pacer with a policy for when Redis does not answer. See
// [Counter.WithStorePolicy]. Under [FailOpen] a turn comes at once.
func (p Pacer) WithStorePolicy(policy StorePolicy) Pacer { return Pacer{p.handle.withPolicy(policy)} }

// longestWait is how long Acquire waits at most if the context has no deadline.
const longestWait = time.Minute

// Acquire takes n permits and waits for their turn: until the context's deadline, or for one minute
// if it has none. If the turn would come later, Acquire returns at once without an error: the
// Decision is refused, nothing is charged, and RetryAfter is the wait that was too long.
//
// If the context ends during the wait, the error is the context's, and the turn is given back in
// the background: at once if nobody waits behind it, otherwise once everybody behind it has left
// too (within seconds of that if the last of them waited in another process). Callers who already
// wait do not move up.
//
// Danger: a process that is killed gives back nothing. The turns of its callers come and pass
// unused, and delay everybody for at most as long as these callers would have waited.
func (p Pacer) Acquire(ctx context.Context, subject string, n int) (Decision, error) {
	patience := longestWait
	if deadline, ok := ctx.Deadline(); ok {
		patience = time.Until(deadline)
	}
	return p.TryAcquire(ctx, subject, n, patience)
}

// TryAcquire is like Acquire but waits no longer than patience, nor beyond the context's deadline.
func (p Pacer) TryAcquire(ctx context.Context, subject string, n int, patience time.Duration) (Decision, error) {
	if deadline, ok := ctx.Deadline(); ok {
		patience = min(patience, time.Until(deadline))
	}
	d, err := p.reserve(ctx, subject, n, max(0, patience))
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
		p.handle.leaveTurn(d)
		return Decision{}, ctx.Err()
	}
}

// Reserve takes n permits for a later turn and returns without waiting. The Decision's Wait is the
// time until the turn, up to 366 days. The context is only for the reservation. Give back unneeded
// permits with [Limiter.Refund]. If the error is [ErrStore], the permits may be reserved all the
// same.
func (p Pacer) Reserve(ctx context.Context, subject string, n int) (Decision, error) {
	const anyTime = algorithm.MaxWindow * time.Microsecond
	return p.reserve(ctx, subject, n, anyTime)
}

// Peek returns a Decision that reports whether one permit is there now, and charges nothing. See
// [Counter.Peek].
func (p Pacer) Peek(ctx context.Context, subject string) (d Decision, err error) {
	q := handleCall{handle: p.handle, subject: subject, n: 1}
	err = q.ask(ctx, &d)
	return d, err
}

// Reset fills the bucket of a subject. Turns that were handed out stay valid. See [Counter.Reset].
func (p Pacer) Reset(ctx context.Context, subject string) (changed bool, err error) {
	q := handleCall{handle: p.handle, subject: subject}
	return q.reset(ctx)
}

func (p Pacer) reserve(ctx context.Context, subject string, n int, patience time.Duration) (d Decision, err error) {
	q := handleCall{handle: p.handle, subject: subject, n: n, charging: chargeAll}
	if err = q.reserve(ctx, &d, patience); err == nil {
		q.front.options.reportDirect(ctx, &d, func() { q.leaveTurn(d) })
	}
	return d, err
}

// leaveTurn gives back, in the background, what a turn charged. If it was counted locally, that may
// be less than was asked for.
func (h *handle) leaveTurn(d Decision) {
	if d.receipt.Cost == 0 {
		return
	}
	f, part := h.front, refund.Part{Receipt: d.receipt}
	part.Key = rediskey.AppendLimit(nil, f.KeyHead, d.Key, d.Rule, false, d.receipt.Limit)
	if charges, _ := f.refunds.Take([]refund.Part{part}, d.receipt.Cost); len(charges) == 1 { // OnDecision may have refunded some
		f.Unused.Leave(abandoned.Turn{Charge: charges[0], Counts: d.ResetAfter})
	}
}

// reserve is askQuietly for a turn that may come later.
func (q *handleCall) reserve(ctx context.Context, d *Decision, patience time.Duration) error {
	if err := q.check(ctx); err != nil {
		return err
	}
	if q.unlimited() {
		return q.askQuietly(ctx, d)
	}
	if q.n < 1 {
		return wrongArgument(q.named.name, "n", q.n, "must be positive")
	}
	c := q.front.directs.open()
	defer q.front.directs.close(c)
	return c.reserve(ctx, q, patience, d)
}
