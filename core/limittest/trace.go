package limittest

import (
	"context"
	"fmt"
	"time"

	"pgregory.net/rapid"

	"github.com/accesslimit/accesslimit/core"
)

// A trace is what one caller does to one counter, one step after the other.
type trace []step

// step waits, and then does one thing.
type step struct {
	wait wait
	do   action
	n    int        // permits; more than the limit ever lets through stands for as many as it does
	by   core.Limit // the limit as this step's process knows it
}

type action string

const (
	allow action = "allow"
	peek  action = "peek"
	reset action = "reset"
)

// wait is how long a step waits: as long as the counter said when it was asked last, or a time of its own; and then some more.
type wait struct {
	until string        // "", "retry" or "reset"
	for_  time.Duration // may be negative, but no step goes back in time
}

// after is the wait in time, with the last answer known.
func (w wait) after(last core.Decision) time.Duration {
	d := w.for_
	switch w.until {
	case "retry":
		d += last.RetryAfter
	case "reset":
		d += last.ResetAfter
	}
	return max(0, d)
}

// traces generates them for a limit. With change, processes that know the limit by another size take part.
func traces(of namedLimit, change bool) *rapid.Generator[trace] {
	known := []core.Limit{of.Limit, of.Limit, of.Limit}
	if change {
		known = append(known, of.changed...)
	}
	one := rapid.Custom(func(t *rapid.T) step {
		return step{
			wait: waitsOf(of).Draw(t, "wait"),
			do:   rapid.SampledFrom([]action{allow, allow, allow, allow, allow, allow, peek, peek, reset}).Draw(t, "do"),
			n:    costsOf(of).Draw(t, "n"),
			by:   rapid.SampledFrom(known).Draw(t, "by"),
		}
	})
	return rapid.Custom(func(t *rapid.T) trace {
		n := rapid.OneOf(rapid.IntRange(1, 40), rapid.Just(15), rapid.Just(40)).Draw(t, "length") // by itself rapid likes about six
		steps := trace(rapid.SliceOfN(one, n, n).Draw(t, "steps"))
		// Where in a sub-window, a window or a tick the trace begins, makes a difference to some algorithms.
		steps[0].wait = wait{for_: upTo(of.Window).Draw(t, "beginning")}
		return steps
	})
}

// upTo is a time of whole microseconds, the clock's own.
func upTo(longest time.Duration) *rapid.Generator[time.Duration] {
	return rapid.Map(rapid.Int64Range(0, longest.Microseconds()), func(n int64) time.Duration {
		return time.Duration(n) * time.Microsecond
	})
}

func waitsOf(of namedLimit) *rapid.Generator[wait] {
	at := func(d time.Duration) *rapid.Generator[wait] { return rapid.Just(wait{for_: d}) }
	until := func(what string) *rapid.Generator[wait] {
		return rapid.Map(rapid.Int64Range(-1, 1), func(n int64) wait { return wait{what, time.Duration(n) * time.Microsecond} })
	}
	some := func(longest time.Duration) *rapid.Generator[wait] {
		return rapid.Map(upTo(longest), func(d time.Duration) wait { return wait{for_: d} })
	}
	return rapid.OneOf(at(0), at(0), at(time.Microsecond), some(of.Window/32), some(of.Window/32), some(of.Window/4),
		some(of.Window), at(of.Window), some(3*of.Window), until("retry"), until("retry"), until("reset"))
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

	chargedBy core.Limit // the limit of the last charge, and
	freshAt   time.Time  // when the counter is a fresh one by that
}

// play does a step. A reset answers with the zero decision. It tells whether the counter had to be reset before the step.
func (p *player) play(s step) (d core.Decision, wasReset bool, err error) {
	time.Sleep(s.wait.after(p.last))
	ctx := context.Background()
	if wasReset = p.mayBeForgotten(s.by); wasReset {
		if err := p.limiter.Reset(ctx, p.name, p.subject, s.by); err != nil {
			return d, true, err
		}
		p.chargedBy = core.Limit{}
	}
	switch s.do {
	case allow:
		d, err = p.limiter.AllowN(ctx, p.name, p.subject, s.by, s.cost())
	case peek:
		d, err = p.limiter.Peek(ctx, p.name, p.subject, s.by)
	case reset:
		err = p.limiter.Reset(ctx, p.name, p.subject, s.by)
	}
	if s.do == allow && d.Allowed && s.cost() > 0 {
		p.chargedBy, p.freshAt = s.by, time.Now().Add(d.ResetAfter)
	}
	p.last = d
	return d, wasReset, err
}

// mayBeForgotten tells whether the counter is fresh to who charged it last, but maybe not by another limit. An engine forgets
// it from then on, some sooner and some later, so who thinks that it refills more slowly may find it gone, or not. No trace
// depends on which.
func (p *player) mayBeForgotten(by core.Limit) bool {
	return p.chargedBy != core.Limit{} && p.chargedBy != by && !time.Now().Before(p.freshAt)
}

// cost is what the step asks for; a limit that is smaller than the trace's own lets less through.
func (s step) cost() int {
	if s.do == peek {
		return 1
	}
	return min(s.n, atOnce(s.by))
}

// failed says at which step of a trace something went wrong.
func (s step) failed(at int, err error) error {
	return fmt.Errorf("step %d, %s %d by %v at %s: %w", at, s.do, s.cost(), s.by, time.Now().UTC().Format("15:04:05.000000"), err)
}
