package algorithm

import (
	"math"
	"slices"
)

// The parts of a bucket whose state is more than a number, because several rates were used or
// permits were given back. token_bucket_state.lua explains them; this is the same in Go.

const (
	maxParts = 4 // the most parts that a bucket has
	// lasting is the value of own for a part that stays until the bucket is fresh.
	lasting = maxUnits
)

// bucketParts is what the state of a bucket holds besides the number of used units.
type bucketParts struct {
	permit, refill, burst int64  // the only rate of a bucket without parts, and its burst
	parts                 []part // slowest rate first; nil: none
}

// isOnly reports whether the bucket has a limit's rate, no other rate, and no gaps.
func (b *bucketParts) isOnly(l *Limit) bool {
	return b.parts == nil && b.permit == l.Permit && b.refill == l.Refill
}

// part holds what the calls at one rate and at all slower ones use.
type part struct {
	used, permit, refill int64 // units: used, of one permit, refilled per tick
	burst                int64 // permits, by the last call at this rate that was charged
	own                  int64 // permits charged at exactly this rate and not given back; or lasting
	gaps
}

func (p *part) rate() float64 { return float64(p.refill) / float64(p.permit) }

func (p *part) is(l *Limit) bool { return p.permit == l.Permit && p.refill == l.Refill }

// usage is the use of a bucket, as counted by one limit.
type usage struct {
	parts []part // current; if nothing is used any more, one empty part for the limit
	own   int    // the index of the part with the limit's rate
	whole int64  // ticks until no part is in use
}

// usage returns the use as counted by a limit. If the limit's rate is new to the bucket, usage acts
// as if its part had been added when the state was written. It stores the parts in room. Their gaps
// must not be written to unless the parts replace those of the state.
func (s *State) usage(t moment, l *Limit, room []part) (u usage) {
	u.parts = s.appendParts(room)
	if u.whole = s.At + ticksUntilFresh(u.parts) - t.place; u.whole <= 0 {
		return usage{parts: append(room[:0], part{permit: l.Permit, refill: l.Refill, burst: l.Max})}
	}
	if u.own = slices.IndexFunc(u.parts, func(p part) bool { return p.is(l) }); u.own < 0 {
		u.parts, u.own = addPart(u.parts, l, s.Charged)
	}
	u.parts[u.own].burst = l.Max
	refill(u.parts, t.place-s.At)
	return u
}

// wait returns after how many ticks a cost fits into the limit's part and the parts of faster
// rates, if the limit's bucket holds full permits. A cost above the bound of a part fits once no
// part is in use. If the limit's rate is new to the bucket, the cost may fit earlier than that.
func (u *usage) wait(l *Limit, cost, full int64) (ticks int64) {
	for i := u.own; i < len(u.parts); i++ {
		p := &u.parts[i]
		missing := p.missing(cost, p.bound(l, full))
		if missing > p.used && u.whole > 0 {
			return u.whole
		}
		ticks = max(ticks, ceilDiv(missing, p.refill))
	}
	return ticks
}

// left returns how many whole permits are left in the limit's part and in the parts of faster
// rates, if the limit's bucket holds full permits. It is negative if one of them is overdrawn.
func (u *usage) left(l *Limit, full int64) int64 {
	left := int64(math.MaxInt64)
	for i := u.own; i < len(u.parts); i++ {
		p := &u.parts[i]
		left = min(left, floorDiv(p.bound(l, full)-p.used, p.permit))
	}
	return left
}

// bound returns how many units of a part may be in use after a call by a limit whose bucket holds
// full permits.
func (p *part) bound(l *Limit, full int64) int64 {
	most := l.mostAt(p.refill)
	if full = max(full, p.burst); full > most/p.permit {
		return most
	}
	return full * p.permit
}

// missing returns how many units have to come back until a cost fits within a bound. If the cost is
// above the bound, that is more than the units in use.
func (p *part) missing(cost, bound int64) int64 {
	if cost > math.MaxInt64/2/p.permit {
		return math.MaxInt64 / 2
	}
	return p.used + cost*p.permit - bound
}

// appendParts appends the parts of a bucket.
func (s *State) appendParts(all []part) []part {
	if s.More == nil {
		return nil
	}
	b := s.More.bucket
	if b.parts == nil {
		return append(all, part{used: s.Used, permit: b.permit, refill: b.refill, burst: b.burst, own: lasting})
	}
	return append(all, b.parts...)
}

func (*tokenBucket) empty(s *State) bool {
	return ticksUntilFresh(s.appendParts(new([maxParts + 1]part)[:0])) == 0
}

// refill refills the parts for a number of ticks. A part that is not in use has no gaps.
func refill(parts []part, ticks int64) {
	for i := range parts {
		p := &parts[i]
		if p.used = unrefilled(p.used, ticks, p.refill); p.used == 0 {
			p.gaps = gaps{}
		}
	}
}

// setParts stores these parts in the state. A bucket of one rate without gaps shares the limit's
// own More, if that is its rate and burst.
func (s *State) setParts(parts []part, l *Limit) {
	one := len(parts) == 1 && len(parts[0].list) == 0
	if one && parts[0].is(l) && parts[0].burst == l.Max {
		s.Used, s.More = parts[0].used, l.shared
		return
	}
	if one {
		p := &parts[0]
		s.Used, s.More = p.used, &More{bucket: &bucketParts{permit: p.permit, refill: p.refill, burst: p.burst}}
		return
	}
	if s.Used = 0; s.More == nil || s.More.bucket.parts == nil {
		s.More = &More{bucket: new(bucketParts)}
	}
	b := s.More.bucket
	b.parts = append(b.parts[:0], parts...)
}

// ticksUntilFresh returns how many ticks it takes until no part is in use.
func ticksUntilFresh(parts []part) (ticks int64) {
	for i := range parts {
		ticks = max(ticks, ceilDiv(parts[i].used, parts[i].refill))
	}
	return ticks
}

// rescaled returns the use of a part in units of another permit, with the last fraction of a permit
// rounded up.
func (p *part) rescaled(permit, most int64) int64 {
	units := p.used
	if p.permit != permit {
		units = rescale(units, p.permit, permit)
	}
	return min(units, most)
}

// copyFullest returns a part for a limit's rate that is a copy of the fullest part. slower is the
// number of slower parts. If the copy may lack some of what the slower parts use, nothing can be
// given back to it; otherwise a refund could leave less than the slower calls use.
func copyFullest(parts []part, l *Limit, slower int, charged int64) part {
	c := part{permit: l.Permit, refill: l.Refill}
	from, used := -1, false
	for i := range parts {
		if units := parts[i].rescaled(l.Permit, l.mostUnits()); units > c.used {
			c.used, c.gaps, from = units, parts[i].gaps, i
		}
		used = used || i < slower && parts[i].used > 0
	}
	if used && from != slower-1 {
		c.gaps = closedGaps(charged)
	}
	c.list = slices.Clone(c.list)
	return c
}

// addPart inserts a part by its rate and returns its index. If there are too many parts, it removes
// the fastest of the others. The next slower part then has at least the removed part's use, so that
// never more is admitted than with both.
func addPart(parts []part, l *Limit, charged int64) (_ []part, at int) {
	for at < len(parts) && parts[at].rate() < float64(l.Refill)/float64(l.Permit) {
		at++
	}
	parts = slices.Insert(parts, at, copyFullest(parts, l, at, charged))
	if len(parts) <= maxParts {
		return parts, at
	}
	last := len(parts) - 1
	if at == last {
		last--
	}
	slower := &parts[last-1]
	slower.used = max(slower.used, parts[last].rescaled(slower.permit, l.mostAt(slower.refill)))
	slower.close(charged)
	parts[at].close(charged)
	return slices.Delete(parts, last, last+1), min(at, len(parts)-2)
}

// close makes a part permanent. Nothing that was charged before can be given back to it.
func (p *part) close(charged int64) { p.own, p.gaps = lasting, closedGaps(charged) }

// chargeParts charges a cost to the part of a limit's rate, which it creates if needed, and to the
// parts of faster rates. It reports false, and charges nothing, if the bucket is no longer in use
// and thus as good as fresh.
func (s *State) chargeParts(t moment, l *Limit, cost int64) bool {
	u := s.usage(t, l, new([maxParts + 1]part)[:0])
	if u.whole == 0 {
		return false
	}
	if s.Charged+cost > maxUnits {
		s.renew(t.now)
		for i := range u.parts {
			u.parts[i].gaps = gaps{}
		}
	}
	before := s.Charged
	s.Charged += cost
	for i := range u.parts {
		switch p := &u.parts[i]; {
		case i >= u.own:
			p.used += cost * p.permit
		case p.used > 0:
			p.addGap(gap{before, s.Charged}, s.Charged)
		}
	}
	u.parts[u.own].own = min(lasting, u.parts[u.own].own+cost)
	s.At = t.place
	s.setParts(u.parts, l)
	return true
}

// lives returns for how long a bucket of several rates counts. Seen by one of the rates, it may be
// as good as fresh earlier.
func (*tokenBucket) lives(s *State, t moment, l *Limit) int64 {
	return (s.At+ticksUntilFresh(s.appendParts(new([maxParts + 1]part)[:0])))*l.Tick - t.now
}
