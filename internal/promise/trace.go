package promise

import (
	"context"
	"fmt"
	"slices"
	"time"

	"pgregory.net/rapid"

	"github.com/accesslimit/accesslimit/core"
)

// A trace is what a caller does with one counter, step by step.
type trace []step

// step is a wait and then one action.
type step struct {
	wait wait
	do   action
	n    int        // permits; a number above the limit's largest cost stands for that cost
	by   core.Limit // the limit as this step's process knows it
	of   int        // which charge is given back
}

type action string

const (
	allow  action = "allow"
	peek   action = "peek"
	reset  action = "reset"
	refund action = "refund"
	// The actions of billPlayer.
	open   action = "open"
	add    action = "add"
	settle action = "settle"
)

// wait is how long a step waits: for a time, from now or from an occasion.
type wait struct {
	until occasion
	more  time.Duration // may be negative, but no step goes back in time
}

// occasion is a time at which a counter's answer may change.
type occasion string

const (
	soon     occasion = ""
	retry    occasion = "as RetryAfter was"
	fresh    occasion = "as ResetAfter was"
	windowOn occasion = "a Window after a charge" // the first that is still to come
)

// traces generates traces for a limit. If change is set, some steps know the limit with another
// size, and some give charges back.
func traces(of namedLimit, change bool) *rapid.Generator[trace] {
	known := []core.Limit{of.Limit, of.Limit, of.Limit}
	actions := []action{allow, allow, allow, allow, allow, allow, allow, allow, peek, peek, reset}
	if change {
		known = append(known, of.changed...)
		actions = append(actions, refund, refund, refund, refund)
	}
	return tracesOf(of, known, actions)
}

// tracesOf generates traces for a limit, of these actions under these limits.
func tracesOf(of namedLimit, known []core.Limit, actions []action) *rapid.Generator[trace] {
	one := rapid.Custom(func(t *rapid.T) step {
		return step{
			wait: waitsOf(of).Draw(t, "wait"),
			do:   rapid.SampledFrom(actions).Draw(t, "do"),
			n:    costsOf(of).Draw(t, "n"),
			by:   rapid.SampledFrom(known).Draw(t, "by"),
			of:   rapid.IntRange(0, 20).Draw(t, "of"),
		}
	})
	return rapid.Custom(func(t *rapid.T) trace {
		n := rapid.OneOf(rapid.IntRange(1, 40), rapid.Just(15), rapid.Just(40)).Draw(t, "length") // on its own, rapid prefers about six
		steps := trace(rapid.SliceOfN(one, n, n).Draw(t, "steps"))
		// For some algorithms it matters where in a sub-window, a window or a tick the trace
		// begins.
		steps[0].wait = wait{more: upTo(of.Window).Draw(t, "beginning")}
		return steps
	})
}

// upTo generates a time in whole microseconds, as the clock has them.
func upTo(longest time.Duration) *rapid.Generator[time.Duration] {
	return rapid.Map(rapid.Int64Range(0, longest.Microseconds()), func(n int64) time.Duration {
		return time.Duration(n) * time.Microsecond
	})
}

func waitsOf(of namedLimit) *rapid.Generator[wait] {
	sub, w := of.Window/32, of.Window
	exactly := func(until occasion, more ...time.Duration) *rapid.Generator[wait] {
		return rapid.Map(rapid.SampledFrom(more), func(d time.Duration) wait { return wait{until, d} })
	}
	some := func(until occasion, longest time.Duration) *rapid.Generator[wait] {
		return rapid.Map(upTo(longest), func(d time.Duration) wait { return wait{until, d} })
	}
	return rapid.OneOf(
		exactly(soon, 0), exactly(soon, 0, time.Microsecond, w), some(soon, sub), some(soon, sub), some(soon, w/4), some(soon, w), some(soon, 3*w),
		exactly(retry, 0, -time.Microsecond, time.Microsecond), exactly(fresh, 0, -time.Microsecond, time.Microsecond),
		exactly(windowOn, -sub, -time.Microsecond, 0, sub), some(windowOn, sub), some(windowOn, sub))
}

func costsOf(of namedLimit) *rapid.Generator[int] {
	most := atOnce(of.Limit)
	return rapid.OneOf(rapid.Just(1), rapid.Just(1), rapid.IntRange(0, most/4+1), rapid.IntRange(0, most), rapid.Just(most))
}

// player plays traces on one counter.
type player struct {
	limiter       *core.Limiter
	name, subject string
	last          core.Decision
	charges       []time.Time
	refundable    []refundable
	charged       int
}

// refundable is a charge that can still be given back, in full or in part.
type refundable struct {
	number int // of the charge, since the last reset
	left   int
	core.Decision
}

// play does a step. For a reset and a refund it returns the zero Decision.
func (p *player) play(s step) (d core.Decision, err error) {
	time.Sleep(p.until(s.wait, s.by).Truncate(time.Microsecond))
	ctx := context.Background()
	switch s.do {
	case allow:
		d, err = p.limiter.MustCounter(p.name, s.by).AllowN(ctx, p.subject, s.cost())
	case peek:
		d, err = p.limiter.MustCounter(p.name, s.by).Peek(ctx, p.subject)
	case reset:
		_, err = p.limiter.MustCounter(p.name, s.by).Reset(ctx, p.subject)
		p.refundable, p.charged = nil, 0
	}
	if s.do == allow && d.Allowed && s.cost() > 0 {
		p.charges = append(p.charges, time.Now())
		p.refundable = append(p.refundable, refundable{p.charged, s.cost(), d})
		p.charged++
	}
	p.last = d
	return d, err
}

// giveBack waits, and gives back some or all of a charge. It returns the charge, and how much it
// gave back: 0 if there is nothing to give back.
func (p *player) giveBack(s step) (of refundable, n int, err error) {
	time.Sleep(p.until(s.wait, s.by).Truncate(time.Microsecond))
	if len(p.refundable) == 0 {
		return refundable{}, 0, nil
	}
	at := len(p.refundable) - 1 - s.of%len(p.refundable)
	of = p.refundable[at]
	n = min(max(1, s.n), of.left)
	if p.refundable[at].left -= n; p.refundable[at].left == 0 {
		p.refundable = slices.Delete(p.refundable, at, at+1)
	}
	return of, n, p.limiter.Refund(context.Background(), of.Decision, n)
}

// until returns how long a wait takes.
func (p *player) until(w wait, by core.Limit) time.Duration {
	switch w.until {
	case retry:
		w.more += p.last.RetryAfter
	case fresh:
		w.more += p.last.ResetAfter
	case windowOn:
		for _, charge := range p.charges {
			if d := time.Until(charge.Add(by.Window)) + w.more; d > 0 {
				return d
			}
		}
	}
	return max(0, w.more)
}

// cost returns the cost of a step, at most what its limit can let through at once.
func (s step) cost() int {
	if s.do == peek {
		return 1
	}
	return min(s.n, atOnce(s.by))
}

// failed adds to an error the step of the trace at which it occurred.
func (s step) failed(at int, err error) error {
	return fmt.Errorf("step %d, %s %d by %v at %s: %w", at, s.do, s.cost(), s.by, time.Now().UTC().Format("15:04:05.000000"), err)
}
