package promise

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/accesslimit/accesslimit/core"
)

// refundsAfterSteps charges windows, and gives back, while the clock jumps back and forth. Nothing
// that others were charged comes back, and Stats.RefundsLost has what was not given back because of
// that.
func (l *lab) refundsAfterSteps(t *testing.T) {
	for kind, owned := range map[core.Algorithm]func() *owners{
		core.SlidingWindow: func() *owners { return &owners{place: subWindow, lasts: 33, longest: 2 * time.Second} },
		core.CalendarWindow: func() *owners {
			return &owners{place: func(now int64, l core.Limit) int64 { return now / l.Window.Microseconds() }, lasts: 1, longest: time.Second}
		},
		core.FixedWindow: func() *owners { return &owners{longest: time.Second} },
	} {
		t.Run(kind.String(), func(t *testing.T) {
			rapid.Check(t, func(rt *rapid.T) {
				limit := windowed(kind, "", 7, time.Second)
				steps := tracesOf(limit, []core.Limit{limit.Limit}, []action{allow, allow, allow, open, refund, refund, peek}).Draw(rt, "trace")
				jumps := rapid.SliceOfN(jumpsOf(limit.Window), len(steps), len(steps)).Draw(rt, "jumps")
				if err := l.play(t, func(limiter *core.Limiter) error {
					p := &steppedPlayer{player: player{limiter: limiter, name: "name", subject: "subject"}, lab: l, limit: limit.Limit, model: owned()}
					for i, s := range steps {
						l.step(jumps[i])
						if err := p.play(s); err != nil {
							return s.failed(i, fmt.Errorf("the clock is off by %v: %w", time.Until(l.now()), err))
						}
					}
					return nil
				}); err != nil {
					rt.Fatal(err)
				}
			})
		})
	}
}

// jumpsOf generates jumps of the clock, often none.
func jumpsOf(w time.Duration) *rapid.Generator[time.Duration] {
	return rapid.SampledFrom([]time.Duration{0, 0, 0, 0, -time.Microsecond, -w / 32, -w / 3, -w, -3 * w, w / 3, w, 3 * w})
}

// steppedPlayer plays traces on one counter, whose clock jumps, and on its model.
type steppedPlayer struct {
	player
	lab     *lab
	limit   core.Limit
	steps   int
	model   *owners
	holders []holder
}

// holder is a charge that can still be given back.
type holder struct {
	*owned
	giveBack func(n int) error
	once     bool // it is a bill
}

func (p *steppedPlayer) play(s step) error {
	p.steps++ // so that no two windows begin in the same microsecond, by which they are told apart
	time.Sleep(p.until(s.wait, s.by).Truncate(time.Microsecond) + time.Duration(p.steps)*time.Microsecond)
	ctx, counter, now := context.Background(), p.limiter.MustCounter(p.name, p.limit), p.lab.now().UnixMicro()
	n := max(1, s.cost())
	if p.model.forget(now, p.limit); p.model.unsure {
		return nil
	}
	var err error
	switch s.do {
	case allow:
		p.last, err = counter.AllowN(ctx, p.subject, n)
		d := p.last
		p.charged(now, n, holder{giveBack: func(n int) error { return p.limiter.Refund(ctx, d, n) }})
	case open:
		var bill *core.Bill
		bill, p.last, err = counter.Open(ctx, p.subject, n)
		p.charged(now, n, holder{giveBack: func(back int) error { return bill.Settle(ctx, n-back) }, once: true})
	case refund:
		if len(p.holders) == 0 {
			return nil
		}
		at := s.of % len(p.holders)
		h := p.holders[at]
		n = min(n, h.permits)
		if err = h.giveBack(n); h.once || n == h.permits {
			p.holders = slices.Delete(p.holders, at, at+1)
		}
		p.model.refund(now, p.limit, h.owned, n)
	}
	if err != nil {
		return err
	}
	p.last, err = counter.Peek(ctx, p.subject)
	left, lost := max(0, p.limit.Max-p.model.used(now, p.limit)), int(p.limiter.Stats().RefundsLost)
	if err == nil && (p.last.Remaining > left || p.last.Remaining+lost+p.model.late < left) {
		return fmt.Errorf("%d left and %d lost, want %d left", p.last.Remaining, lost, left)
	}
	return err
}

// charged charges the model if the last call was allowed.
func (p *steppedPlayer) charged(now int64, n int, h holder) {
	if p.last.Source == core.FromDenyCache {
		return
	}
	if h.owned = p.model.ask(now, p.limit, n, p.last.Allowed); h.owned != nil {
		p.holders = append(p.holders, h)
	}
}

// owners is a window that knows who was charged what.
type owners struct {
	// place returns the number of the sub-window or window that contains a time. A charge counts in
	// lasts of them. If place is nil, a window begins with its first call.
	place func(now int64, l core.Limit) int64
	lasts int64

	// longest is how long the key lives at most after a refund. If the clock stepped back before and
	// forth after it, it is as if the time had passed.
	longest time.Duration

	charges []*owned
	moves   int   // how often the charges were moved because the clock stepped back
	dies    int64 // when the key dies, if that is before the charges no longer count; or 0
	forgot  int64 // when it died last, at the earliest; it may live a little longer
	unsure  bool  // the clock was before forgot afterwards, so the model no longer knows what counts
	late    int   // permits that were given back after they would have come back by themselves
}

// owned is what one call was charged.
type owned struct {
	place, first int64 // where it counts, and where it was made
	permits      int
	moves        int // those before it was made
}

// ends returns where a charge no longer counts, and where a time is.
func (o *owners) ends(place, now int64, l core.Limit) (ends, at int64) {
	if o.place == nil {
		return place + l.Window.Microseconds(), now
	}
	return place + o.lasts, o.place(now, l)
}

// forget forgets all charges if the key may have died. They do not count again when the clock steps
// back.
func (o *owners) forget(now int64, l core.Limit) {
	if o.unsure = o.unsure || now < o.forgot; o.used(now, l) == 0 || o.dies > 0 && now >= o.dies {
		o.charges, o.dies, o.forgot = nil, 0, now
	}
}

func (o *owners) used(now int64, l core.Limit) (sum int) {
	for _, c := range o.charges {
		if ends, at := o.ends(c.place, now, l); at < ends {
			sum += c.permits
		}
	}
	return sum
}

// ask notes a call that was charged, or refused. If the clock stepped back, all charges move to
// this time.
func (o *owners) ask(now int64, l core.Limit, n int, charge bool) (c *owned) {
	_, at := o.ends(0, now, l)
	if slices.ContainsFunc(o.charges, func(c *owned) bool { return c.place > at }) {
		o.moves, o.dies = o.moves+1, 0
		for _, c := range o.charges {
			c.place = at
		}
	}
	if !charge {
		return nil
	}
	o.dies = 0
	o.charges = slices.DeleteFunc(o.charges, func(c *owned) bool {
		ends, at := o.ends(c.place, now, l)
		return at >= ends || c.permits == 0
	})
	if o.place == nil && len(o.charges) > 0 {
		at = o.charges[0].place
	}
	c = &owned{at, at, n, o.moves}
	o.charges = append(o.charges, c)
	return c
}

func (o *owners) refund(now int64, l core.Limit, c *owned, n int) {
	c.permits -= n
	ends, at := o.ends(c.first, now, l)
	if at >= ends {
		o.late += n
	}
	if c.moves == o.moves && slices.ContainsFunc(o.charges, func(c *owned) bool { return c.place > at }) {
		o.dies = now + o.longest.Microseconds()
	}
}
