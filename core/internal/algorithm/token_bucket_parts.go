package algorithm

import "slices"

// The parts of a bucket whose state is more than a number: several rates were used, or permits were
// given back. token_bucket_state.lua says what they are; this is the same in Go.

// The most parts that a bucket has, and the most gaps of a part.
const (
	maxParts = 4
	maxGaps  = 64
)

// bucketParts is what the state of a bucket holds beyond the units used.
type bucketParts struct {
	permit, refill int64  // the one rate, of a bucket without parts
	parts          []part // slowest rate first; nil: none
}

// isOnly reports whether there is one rate, that of a limit, and no gaps.
func (b *bucketParts) isOnly(l *Limit) bool {
	return b.parts == nil && b.permit == l.Permit && b.refill == l.Refill
}

// part holds the use of a bucket at one rate.
type part struct {
	used, permit, refill int64 // units: used, of one permit, refilled per tick
	gaps                 []gap // oldest first
}

// gap holds positions that a part does not use: those after the first, up to the second.
type gap struct{ after, upto int64 }

func (p *part) rate() float64 { return float64(p.refill) / float64(p.permit) }

func (p *part) is(l *Limit) bool { return p.permit == l.Permit && p.refill == l.Refill }

// usage is the use of a bucket that is not simple, as one limit counts it.
type usage struct {
	parts []part // as they are now; nil: nothing is used any more
	own   int    // the place of the part with the limit's rate; -1: there is none
	used  int64  // units of the limit
	gaps  []gap  // of the fullest part, of which a new one is a copy
	whole int64  // if no part has the limit's rate: ticks until nothing of any part is used
}

// usage returns the use as a limit counts it. It stores the parts in room. Their gaps must not be
// written to.
func (s *State) usage(t moment, l *Limit, room []part) (u usage) {
	u.parts, u.own = s.appendParts(room), -1
	for i := range u.parts {
		if u.parts[i].is(l) {
			u.own = i
		}
	}
	if u.own < 0 {
		u.used, u.gaps = fullest(u.parts, l)
	}
	ticks := t.place - s.At
	switch {
	case !refill(u.parts, ticks):
		return usage{own: -1}
	case u.own >= 0:
		u.used = u.parts[u.own].used
	default:
		u.used, u.whole = unrefilled(u.used, ticks, l.Refill), ticksUntilFresh(u.parts)
	}
	return u
}

// appendParts appends the parts of a bucket.
func (s *State) appendParts(all []part) []part {
	if s.More == nil {
		return nil
	}
	b := s.More.bucket
	if b.parts == nil {
		return append(all, part{used: s.Used, permit: b.permit, refill: b.refill})
	}
	return append(all, b.parts...)
}

func (tokenBucket) empty(s *State) bool {
	return !slices.ContainsFunc(s.appendParts(new([maxParts]part)[:0]), func(p part) bool { return p.used > 0 })
}

// refill refills the parts for so many ticks. A part that becomes empty loses its gaps. It reports
// whether anything is still used.
func refill(parts []part, ticks int64) (used bool) {
	for i := range parts {
		p := &parts[i]
		if p.used = unrefilled(p.used, ticks, p.refill); p.used == 0 {
			p.gaps = nil
		}
		used = used || p.used > 0
	}
	return used
}

// fullest returns the use of the fullest part, in units of a limit, and its gaps.
func fullest(parts []part, l *Limit) (used int64, gaps []gap) {
	for i := range parts {
		if units := parts[i].rescaled(l.Permit, l.mostUnits()); units > used {
			used, gaps = units, parts[i].gaps
		}
	}
	return used, gaps
}

// setParts stores these parts in the state. A bucket of one rate without gaps shares the limit's
// own More, if that is its rate.
func (s *State) setParts(parts []part, l *Limit) {
	if len(parts) == 1 && len(parts[0].gaps) == 0 && parts[0].is(l) {
		s.Used, s.More = parts[0].used, l.shared
		return
	}
	if s.Used = 0; s.More == nil || s.More.bucket.parts == nil {
		s.More = &More{bucket: new(bucketParts)}
	}
	b := s.More.bucket
	b.parts = append(b.parts[:0], parts...)
}

// ticksUntilFresh returns how many ticks it takes until no part uses anything.
func ticksUntilFresh(parts []part) (ticks int64) {
	for i := range parts {
		ticks = max(ticks, ceilDiv(parts[i].used, parts[i].refill))
	}
	return ticks
}

// soon returns how long it takes until so many units have come back, or everything has.
func (u *usage) soon(units int64, t moment, l *Limit) int64 {
	after := l.refilledAfter(units, t)
	if u.whole > 0 {
		after = min(after, (t.place+u.whole)*l.Tick-t.now)
	}
	return after
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

// withPart adds a part where its rate belongs, and returns its place. If there is one too many, the
// fastest of the others is removed. The next slower part then has at least its use, so that neither
// limit admits more than it would alone.
func withPart(parts []part, p part, charged int64, l *Limit) (_ []part, at int) {
	for at < len(parts) && parts[at].rate() < p.rate() {
		at++
	}
	parts = slices.Insert(parts, at, p)
	if len(parts) <= maxParts {
		return parts, at
	}
	last := len(parts) - 1
	if at == last {
		last--
	}
	slower := &parts[last-1]
	if used := parts[last].rescaled(slower.permit, l.mostAt(slower.refill)); used > slower.used {
		slower.used, slower.gaps = used, []gap{{0, charged}}
	}
	return slices.Delete(parts, last, last+1), min(at, len(parts)-2)
}

// addGap adds a gap, and removes those whose permits have all come back. Beyond maxGaps the oldest
// are merged, and nothing can be given back there any more.
func (p *part) addGap(of gap, charged int64) {
	if len(p.gaps) == 0 && !below(charged-of.upto, p.permit, p.used) {
		return
	}
	var gaps []gap // newest first
	held := charged
	add := func(g gap) bool {
		if last := len(gaps) - 1; last >= 0 && g.upto >= gaps[last].after {
			newer := gaps[last]
			held += newer.upto - newer.after
			g = gap{min(g.after, newer.after), max(g.upto, newer.upto)}
			gaps = gaps[:last]
		}
		if !below(held-g.upto, p.permit, p.used) {
			return false
		}
		gaps, held = append(gaps, g), held-(g.upto-g.after)
		return true
	}
	all := slices.Clone(p.gaps)
	at := len(all)
	for at > 0 && all[at-1].upto > of.upto {
		at--
	}
	all = slices.Insert(all, at, of)
	for i := len(all) - 1; i >= 0 && add(all[i]); i-- {
	}
	if last := len(gaps) - 1; last >= maxGaps {
		gaps[last-1].after = 0
		gaps = gaps[:last]
	}
	slices.Reverse(gaps)
	p.gaps = gaps
}

// below reports whether so many permits are fewer units than used.
func below(permits, permit, used int64) bool { return permits < ceilDiv(used, permit) }

func (u *usage) resetAfter(t moment, l *Limit) int64 {
	if u.used == 0 {
		return 0
	}
	return u.soon(u.used, t, l)
}

// chargeParts charges a cost to the part of a limit's rate, created if needed, and to those of
// faster rates. It reports false if nothing is used any more: then the bucket is as good as fresh,
// and was not charged.
func (s *State) chargeParts(t moment, l *Limit, cost int64) bool {
	var room [maxParts + 1]part
	u := s.usage(t, l, room[:0])
	if u.parts == nil {
		return false
	}
	parts, own := u.parts, u.own
	if own < 0 {
		parts, own = withPart(parts, part{used: u.used, permit: l.Permit, refill: l.Refill, gaps: u.gaps}, s.Charged, l)
	}
	if s.Charged+cost > maxUnits {
		s.renew(t.now)
		for i := range parts {
			parts[i].gaps = nil
		}
	}
	before := s.Charged
	s.Charged += cost
	for i := range parts {
		switch p := &parts[i]; {
		case i >= own:
			p.used = min(p.plus(cost), l.mostAt(p.refill))
		case p.used > 0:
			p.addGap(gap{before, s.Charged}, s.Charged)
		}
	}
	s.At = t.place
	s.setParts(parts, l)
	return true
}

// lives returns for how long a bucket of several rates counts. For one of them it may be as good as
// fresh before.
func (s *State) lives(t moment, l *Limit) int64 {
	return (s.At+ticksUntilFresh(s.appendParts(new([maxParts]part)[:0])))*l.Tick - t.now
}

// plus returns the use with so many permits more, or the most that can be used.
func (p *part) plus(permits int64) int64 {
	if !below(permits, p.permit, maxUnits) {
		return maxUnits
	}
	return p.used + permits*p.permit
}

// giveBackTo gives permits of a charge back to a part, as far as the part holds them and they have
// not come back, and reports whether that changes it. In an overdrawn bucket, permits behind which
// others wait are not given back, because those waits were already announced.
func (c *Charge) giveBackTo(p *part, charged int64) (changed bool) {
	position := c.newest()
	hole := gap{position - c.Cost, position}
	held, behind := c.Cost, charged-position
	for _, g := range p.gaps {
		held -= max(0, min(g.upto, hole.upto)-max(g.after, hole.after))
		behind -= max(0, g.upto-max(g.after, hole.upto))
	}
	if p.is(c.Limit) && p.used > c.Limit.Max*p.permit {
		held -= behind
		hole.after = position - held
	}
	if held <= 0 || !below(behind, p.permit, p.used) {
		return false
	}
	back := p.used - behind*p.permit
	if below(held, p.permit, back) {
		back = held * p.permit
	}
	p.used -= back
	p.addGap(hole, charged)
	return true
}
