package algorithm_test

import (
	"cmp"
	"math"
	"slices"

	"github.com/accesslimit/accesslimit/core/internal/algorithm"
)

// tub models a bucket by a list of all charges. For each rate it holds the permits that calls at
// that rate and at slower ones were charged, and that were not given back, oldest first. The oldest
// of them come back first.
type tub struct {
	at    int64 // the tick at which it was written
	parts []tubPart
}

type tubPart struct {
	permit, refill, burst int64
	used                  int64 // units
	held                  []heldPermits
	lasts                 bool  // it has the rate that was the first
	own                   int64 // permits charged at this very rate, and not given back
}

// heldPermits are some permits of one charge.
type heldPermits struct{ charge, permits int64 }

func (p *tubPart) is(l *algorithm.Limit) bool { return p.permit == l.Permit && p.refill == l.Refill }

// clone returns a copy of the tub, refilled up to a tick, and when everything is back.
func (b *tub) clone(at int64) (c tub, whole int64) {
	c.at = at
	for _, p := range b.parts {
		p.held = slices.Clone(p.held)
		whole = max(whole, (p.used+p.refill-1)/p.refill-max(0, at-b.at))
		p.used = max(0, p.used-max(0, at-b.at)*p.refill)
		c.parts = append(c.parts, p)
	}
	if whole == 0 {
		c.parts = nil
	}
	return c, whole
}

// copyOf returns a part of a limit's rate that holds what the fullest part does. If that is not the
// next slower one, it may lack what slower calls use, so nothing can be given back to the copy.
func (b *tub) copyOf(l *algorithm.Limit) tubPart {
	c := tubPart{permit: l.Permit, refill: l.Refill}
	from, next, slower := -1, -1, false
	for i, p := range b.parts {
		part := p.used % p.permit * l.Permit
		if units := p.used/p.permit*l.Permit + (part+p.permit-1)/p.permit; units > c.used {
			c.used, c.held, from = units, slices.Clone(p.held), i
		}
		if p.refill*l.Permit < l.Refill*p.permit {
			next, slower = i, slower || p.used > 0
		}
	}
	if slower && from != next {
		c.held = nil
	}
	return c
}

// seenBy returns the tub as a limit sees it, the place of the limit's own part, and when everything
// is back. A part that is new is as if it had been there since the tub was written.
func (b *tub) seenBy(l *algorithm.Limit, at int64) (seen tub, own int, whole int64) {
	_, whole = b.clone(at)
	if whole == 0 {
		return tub{at, []tubPart{{permit: l.Permit, refill: l.Refill, burst: l.Max, lasts: true}}}, 0, 0
	}
	seen, _ = b.clone(b.at)
	if !slices.ContainsFunc(seen.parts, func(p tubPart) bool { return p.is(l) }) {
		seen.parts = append(seen.parts, b.copyOf(l))
		slices.SortFunc(seen.parts, func(a, b tubPart) int { return cmp.Compare(a.refill*b.permit, b.refill*a.permit) })
	}
	seen, _ = seen.clone(at)
	own = slices.IndexFunc(seen.parts, func(p tubPart) bool { return p.is(l) })
	seen.parts[own].burst = l.Max
	return seen, own, whole
}

// answer decides a cost by the part of a limit and all faster ones. Each may be used up to the
// larger of its burst and the limit's.
func (b *tub) answer(l *algorithm.Limit, now, cost int64) (want algorithm.Verdict) {
	at := now / l.Tick
	seen, own, whole := b.seenBy(l, at)
	after := func(ticks int64) int64 {
		if ticks = min(ticks, whole); ticks == 0 {
			return 0
		}
		return (at+ticks)*l.Tick - now
	}
	want = algorithm.Verdict{At: now, Remaining: l.Max}
	var reset, retry int64
	for _, p := range seen.parts[own:] {
		full := max(l.Max, p.burst)
		want.Remaining = min(want.Remaining, max(0, full-(p.used+p.permit-1)/p.permit))
		reset = max(reset, (p.used+(l.Max-full)*p.permit+p.refill-1)/p.refill)
		retry = max(retry, (p.used+(cost-full)*p.permit+p.refill-1)/p.refill)
	}
	want.ResetAfter, want.RetryAfter = after(reset), after(retry)
	return want
}

func (b *tub) charge(l *algorithm.Limit, now, cost, id int64) {
	seen, own, _ := b.seenBy(l, now/l.Tick)
	for i := own; i < len(seen.parts); i++ {
		p := &seen.parts[i]
		p.used += cost * p.permit
		p.held = append(p.held, heldPermits{id, cost})
	}
	seen.parts[own].own += cost
	*b = seen
}

// refund gives back the newest permits of a charge that were not given back before. If no call at
// the charge's rate is left, its part goes.
func (b *tub) refund(l *algorithm.Limit, now, permits, id int64) {
	b.giveBack(l, now, permits, id, false)
}

// refundInDebt is refund for a bucket in which nobody waits for a turn.
func (b *tub) refundInDebt(l *algorithm.Limit, now, permits, id int64) {
	b.giveBack(l, now, permits, id, true)
}

func (b *tub) giveBack(l *algorithm.Limit, now, permits, id int64, inDebt bool) {
	after, whole := b.clone(now / l.Tick)
	if whole == 0 {
		return
	}
	changed, burst := false, int64(0)
	for i := range after.parts {
		p := &after.parts[i]
		burst = max(burst, p.burst)
		most := burst
		if inDebt {
			most = math.MaxInt64 / p.permit
		}
		given := p.refund(most, permits, id)
		changed = changed || given > 0
		if p.is(l) {
			p.own -= given
		}
	}
	if !changed { // not even the refill is written
		for i := range b.parts {
			b.parts[i].held = after.parts[i].held
		}
		return
	}
	after.parts = slices.DeleteFunc(after.parts, func(p tubPart) bool { return !p.lasts && p.own == 0 })
	*b = after
}

// refund gives back permits of a part, where it and the slower ones had at most this burst. It
// returns how many are no longer held; some of them may have come back by themselves.
func (p *tubPart) refund(burst, permits, id int64) (given int64) {
	at := slices.IndexFunc(p.held, func(h heldPermits) bool { return h.charge == id })
	if at < 0 {
		return 0
	}
	behind := int64(0)
	for _, h := range p.held[at+1:] {
		behind += h.permits
	}
	given = permits
	if p.used > burst*p.permit {
		given = max(0, permits-behind)
	}
	back := max(0, min(p.used-behind*p.permit, given*p.permit))
	if back == 0 {
		given = 0
	}
	p.used -= back
	p.held[at].permits -= permits
	p.held = slices.Insert(p.held, at+1, heldPermits{nobody, permits - given})
	return given
}
