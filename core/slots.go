package core

import (
	"bytes"
	"context"
	"time"

	"github.com/accesslimit/accesslimit/core/internal/algorithm"
)

// Slots limit the number of things that a subject does at once, by [Concurrency]. Make them with
// [Limiter.Slots]. Slots are a small value, safe for concurrent use. Errors are those of [Counter].
type Slots struct {
	handle *handle
	own    *preparedLimit
}

// Slots returns the [Slots] of a name: n for each subject, 1 to 10,000. The error is a *[RuleError].
func (l *Limiter) Slots(name string, n int) (Slots, error) {
	h, err := l.front().newHandle(name, &slotsKind, InFlight(n))
	return Slots{handle: h}, err
}

// MustSlots is like Slots but panics if n is wrong.
func (l *Limiter) MustSlots(name string, n int) Slots { return orPanic(l.Slots(name, n)) }

var slotsKind = handleKind{accepts: whyNotSlots, one: true}

func whyNotSlots(limit *Limit) string {
	if !limit.Algorithm.properties().Slots {
		return "cannot be held: use InFlight"
	}
	return ""
}

// LostAfter returns the slots with another time after which the slot of a holder that died is free:
// at least one second, 30 seconds by default. Slots with different times are counted apart. The
// error of a bad time is returned by the methods of the Slots.
func (s Slots) LostAfter(span time.Duration) Slots {
	if s.handle != nil {
		limit := s.handle.limits[0].limit
		limit.Window = span
		s.own = s.handle.substitute(limit)
	}
	return s
}

// WithStorePolicy returns the slots with a policy for when Redis does not answer. See
// [Counter.WithStorePolicy]. A slot that is counted locally is renewed and released locally, and
// under [FailOpen] none is taken.
func (s Slots) WithStorePolicy(policy StorePolicy) Slots {
	s.handle = s.handle.withPolicy(policy)
	return s
}

// Hold takes a slot, if there is one, and keeps it until release is called:
//
//	release, d, err := exports.Hold(ctx, "user:alice")
//	if err != nil || !d.Allowed {
//		return // nothing was taken
//	}
//	defer release()
//
// The context is only for taking the slot. The slot is renewed in the background until it is
// released. If this process dies, the slot is free after the time of [Slots.LostAfter]. RetryAfter
// is an upper bound: a slot may be free sooner.
//
// release is never nil. It gives back nothing if nothing was taken, and does nothing the second
// time. It returns within Options.Timeout, or twice that if the slot is just being renewed. If it
// could not give the slot back, that is tried again in the background.
func (s Slots) Hold(ctx context.Context, subject string) (release func(), d Decision, err error) {
	release = func() {}
	q := handleCall{handle: s.handle, own: s.own, subject: subject, n: 1, charging: chargeAll}
	if q.handle == nil {
		return release, d, errZeroHandle
	}
	slots, err := q.hold(ctx, &d)
	if err != nil {
		return release, d, err
	}
	if len(slots) > 0 {
		release = q.front.inFlight.Hold(slots).Release
	}
	q.front.options.reportDirect(ctx, &d, release)
	return release, d, nil
}

// Peek returns the Decision that Hold would return, and takes nothing.
func (s Slots) Peek(ctx context.Context, subject string) (d Decision, err error) {
	q := handleCall{handle: s.handle, own: s.own, subject: subject, n: 1}
	err = q.ask(ctx, &d)
	return d, err
}

// Reset frees all slots of a subject. See [Counter.Reset].
func (s Slots) Reset(ctx context.Context, subject string) (changed bool, err error) {
	q := handleCall{handle: s.handle, own: s.own, subject: subject}
	return q.reset(ctx)
}

// hold takes a slot, and returns it. There is none if nothing was taken.
func (q *handleCall) hold(ctx context.Context, d *Decision) (slots []algorithm.Charge, err error) {
	if err := q.check(ctx); err != nil {
		return nil, err
	}
	c := q.front.directs.open()
	defer q.front.directs.close(c)
	if err := c.process(ctx, q, d); err != nil || !c.Passed() {
		return nil, err
	}
	for i := range c.Len() {
		if slot := c.Counter(i).Charged(c.Verdict(i)); slot.Cost > 0 {
			slot.Key = bytes.Clone(slot.Key)
			slots = append(slots, slot)
		}
	}
	return slots, nil
}
