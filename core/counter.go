package core

import (
	"context"
	"fmt"

	"github.com/accesslimit/accesslimit/core/internal/engine"
	"github.com/accesslimit/accesslimit/core/internal/rediskey"
	"github.com/accesslimit/accesslimit/core/internal/tally"
)

// Counter counts the calls of subjects under one name, against one limit or several that are
// charged together. Make one with [Limiter.Counter] when the service starts. It is a small value,
// safe for concurrent use:
//
//	replies, err := limiter.Counter("reply", core.PerMinute(5))
//	...
//	d, err := replies.Allow(ctx, "user:alice")
//
// A refusal is a Decision with Allowed == false. An error means that there is no decision, and the
// Decision is the zero one. It is a *[StoreError] if Redis did not answer and
// [Counter.WithStorePolicy] has set no policy, the context's error if it has ended, or a
// *[RuleError] if the call itself is wrong, such as one with an empty subject.
//
// A [Rule] with the same name, limit and subjects uses the same counters, so both count together.
type Counter struct {
	handle *handle
	own    *preparedLimit // in place of the first limit, or nil
}

// Counter returns a [Counter] for a name and a limit, and for further limits beside it: a call is
// charged to all of them or to none. If the limit is [Unlimited], all calls pass uncounted,
// whatever the further limits. The error is a *[RuleError]. For [Concurrency] use [Limiter.Slots].
func (l *Limiter) Counter(name string, limit Limit, also ...Limit) (Counter, error) {
	h, err := l.front().newHandle(name, &counterKind, append([]Limit{limit}, also...)...)
	return Counter{handle: h}, err
}

// MustCounter is like Counter but panics if a limit is wrong.
func (l *Limiter) MustCounter(name string, limit Limit, also ...Limit) Counter {
	return orPanic(l.Counter(name, limit, also...))
}

var counterKind = handleKind{accepts: noSlots}

func noSlots(limit *Limit) string {
	if limit.Algorithm.properties().Slots {
		return "takes slots that are given back: use Limiter.Slots"
	}
	return ""
}

// With returns the counter with another first limit, for limits that are known only per call.
// Limits are cached: With allocates nothing for one of the first 1,000. The error of a bad limit,
// or of one with the span and the algorithm of a further limit, is returned by the methods of the
// Counter.
func (c Counter) With(limit Limit) Counter {
	if c.handle != nil {
		c.own = c.handle.substitute(limit)
	}
	return c
}

// WithStorePolicy returns the counter with a policy for when Redis does not answer. Allow then
// returns a Decision with the Reason [StoreFailOpen] or [StoreFailClosed], or one that was counted
// locally, and no [ErrStore]. The error of a bad policy is returned by the methods of the Counter.
func (c Counter) WithStorePolicy(policy StorePolicy) Counter {
	c.handle = c.handle.withPolicy(policy)
	return c
}

// WithBills returns the counter with other terms for [Counter.Open] and [Counter.Charge]. The error of
// wrong terms is returned by the methods of the Counter.
func (c Counter) WithBills(terms BillTerms) Counter {
	if c.handle != nil {
		changed := *c.handle
		changed.bills = terms.filled()
		if err := changed.bills.wrong(changed.named.name); err != nil {
			changed.wrong, changed.single = err, nil
		}
		c.handle = &changed
	}
	return c
}

// Allow charges one permit, if there is one, and reports whether the subject may go on.
func (c Counter) Allow(ctx context.Context, subject string) (d Decision, err error) {
	err = c.charge(ctx, subject, 1, &d) // not AllowN, which would return a Decision once more
	return d, err
}

// AllowN charges n permits, all or none. If n is 0, the call is allowed and nothing is charged. If
// n is more than a limit can ever let through at once, the error is [ErrCostExceedsLimit]. If n is
// negative, it is a *[RuleError].
func (c Counter) AllowN(ctx context.Context, subject string, n int) (d Decision, err error) {
	err = c.charge(ctx, subject, n, &d)
	return d, err
}

// charge is not inlined, so that Allow can be. A Decision is large, and with Allow inlined it is
// written once, where the caller of Allow wants it. The handleCall is filled field by field,
// because a composite literal would be built elsewhere and copied. Together, the two copies took a
// fifth of a call in this process: see BenchmarkAllow.
//
//go:noinline
func (c Counter) charge(ctx context.Context, subject string, n int, d *Decision) error {
	if c.own == nil && c.handle.chargesHere(n) && subject != "" && ctx.Err() == nil {
		c.handle.chargeHere(ctx, subject, n, d)
		return nil
	}
	var q handleCall
	q.handle, q.own, q.subject, q.n, q.charging = c.handle, c.own, subject, n, chargeAll
	return q.ask(ctx, d)
}

// chargesHere reports whether chargeHere decides calls of n permits.
func (h *handle) chargesHere(n int) bool {
	return h != nil && h.single != nil && h.memory != nil && !h.named.marks.MayHave() && 0 < n && int64(n) <= h.single.counted.Compiled.Max
}

// chargeHere charges a call to the only limit of its handle, which is counted in this process. It
// has the effect of handleCall.ask in half the instructions, because the store cannot fail and no
// other limit can refuse. BenchmarkAllow takes 0.85 of the time that it takes without chargeHere.
func (h *handle) chargeHere(ctx context.Context, subject string, n int, d *Decision) {
	f, limit := h.front, h.single
	c := f.directs.Get().(*directCall)
	counter, v := &c.here.counter, &c.here.verdict
	counter.Key = rediskey.Append(counter.Key[:0], h.keyHead, subject, limit.counted.KeyTail)
	counter.Limit, counter.Cost = limit.counted.Compiled, int64(n)
	h.memory.DecideOne(counter, true, v)
	if v.RetryAfter == 0 {
		traits := tally.Bound
		if engine.IsNear(counter, v) {
			traits |= tally.Near
			noteNear(h.named.tally, c.ID(), []byte(subject), engine.ShareInUse(counter, v))
		}
		h.named.tally.CountUsual(traits, &c.place)
		d.receipt.FillPlain(f.refunds, counter, v, c.ID())
	} else {
		h.named.tally.Count(string(LimitExceeded), string(f.source), tally.Bound, &c.place)
		noteRefusal(h.named.tally, c.ID(), []byte(subject))
	}
	d.fill(h.named.name, &limit.limit, v, f.source)
	d.Key = subject
	c.Clear()
	f.directs.Put(c)
	if f.options.OnDecision != nil {
		f.options.reportDirect(ctx, d, nil)
	}
}

// AllowUpTo is for work in batches. It charges as many of n permits as fit into all limits, in one
// step, and returns how many. If none fits, granted is 0, nothing is charged, and the Decision is
// the refusal of one permit. If n is 0, the call is allowed and nothing is charged. If n is
// negative, the error is a *[RuleError]. A refund of the Decision gives back at most the permits
// granted.
func (c Counter) AllowUpTo(ctx context.Context, subject string, n int) (granted int, d Decision, err error) {
	q := handleCall{handle: c.handle, own: c.own, subject: subject, n: n, charging: chargeUpTo}
	if err = q.ask(ctx, &d); err == nil && d.Allowed {
		granted = q.n
	}
	return granted, d, err
}

// Charge charges n permits to all limits of the counter, whether they fit or not. It is for costs that
// are known only afterwards, such as the tokens that a language model has used:
//
//	d, err := tokens.Charge(ctx, "tenant:acme", used)
//
// The part that does not fit becomes debt: later calls are refused until it has come back, and their
// RetryAfter says when. The windows of FixedWindow and CalendarWindow forget debt at their end,
// SlidingWindow forgets it when its span has passed, and a TokenBucket first refills what it owes. In
// debt, Remaining is 0.
//
// The debt of a limit is at most its Max, or the Burst of a TokenBucket, unless [Counter.WithBills]
// says otherwise. No limit is charged beyond that bound. If the cost exceeds one, the error is
// [ErrDebtExceeded], and the Decision is valid all the same. Stats.DebtExceeded counts it.
//
// Allowed is false only if the subject is [Blocked] or [Banned], or if the policy of [Counter.WithStorePolicy]
// says so while Redis does not answer; nothing is charged then. If n is 0, nothing is charged. Other
// errors are those of [Counter]. A limit by SlidingLog is a *[RuleError], and so is one of a rule with a
// Lease and the counter's name.
func (c Counter) Charge(ctx context.Context, subject string, n int) (d Decision, err error) {
	q := handleCall{handle: c.handle, own: c.own, subject: subject, n: n, charging: chargeInDebt}
	if err = q.ask(ctx, &d); err != nil || q.above == 0 {
		return d, err
	}
	q.named.tally.Costs().Exceed(uint64(q.above))
	return d, fmt.Errorf("%w: %d of %d were not charged", ErrDebtExceeded, q.above, n)
}

// Peek returns the Decision that Allow would return, and charges nothing. Remaining is the number
// of permits left now; with several limits, of the one that binds.
func (c Counter) Peek(ctx context.Context, subject string) (d Decision, err error) {
	q := handleCall{handle: c.handle, own: c.own, subject: subject, n: 1}
	err = q.ask(ctx, &d)
	return d, err
}

// Reset forgets what the subject used of all limits of the counter, as if it had never called, and
// reports whether there was anything to forget. A bare address as the subject is a *[RuleError]:
// use [Limiter.IPSubject].
func (c Counter) Reset(ctx context.Context, subject string) (changed bool, err error) {
	q := handleCall{handle: c.handle, own: c.own, subject: subject}
	return q.reset(ctx)
}
