package algorithm

import "slices"

// giveBack removes the permits from all parts that hold them. It is token_bucket_giveback.lua in
// Go.
func (*tokenBucket) giveBack(s *State, now int64, c *Charge) (lost int64) {
	at, born := now/c.Limit.Tick, s.Born
	if s.At > at {
		born = min(born, at*c.Limit.Tick)
	}
	if c.At < born || c.newest() > s.Charged {
		return 0
	}
	parts := s.appendParts(new([maxParts + 1]part)[:0])
	refill(parts, max(0, at-s.At))
	changed, biggest := false, int64(0)
	for i := range parts {
		p := &parts[i]
		biggest = max(biggest, p.burst)
		gives, loses := c.giveBackTo(p, s.Charged, ceilDiv(p.used, p.permit) > biggest && !c.InDebt)
		changed = changed || gives
		if p.rate() >= float64(c.Limit.Refill)/float64(c.Limit.Permit) {
			lost = max(lost, loses)
		}
	}
	if changed {
		s.At, s.Born = at, born
		s.setParts(slices.DeleteFunc(parts, func(p part) bool { return p.own == 0 }), c.Limit)
	}
	return lost
}

// newest returns the position of the newest permit to be given back. When a charge is given back in
// several steps, its newest permits go first.
func (c *Charge) newest() int64 { return c.Position - c.Given }

// spot says where a charge lies in a part.
type spot struct {
	held   int64 // permits of the charge that the part may hold
	behind int64 // permits that were charged later and not given back, at most
	unsure int64 // by how much behind may be too many
	merged bool  // the charge lies in a gap whose positions are not known
	known  bool  // the part certainly holds the charge
}

// spotIn returns where a charge lies in a part.
func (c *Charge) spotIn(p *part, charged int64) spot {
	of := gap{c.newest() - c.Cost, c.newest()}
	at := spot{held: c.Cost, behind: charged - of.upto, known: true}
	for i, g := range p.list {
		common := max(0, min(g.upto, of.upto)-max(g.after, of.after))
		newer := max(0, g.upto-max(g.after, of.upto))
		if i > 0 || p.kept == 0 {
			at.held, at.behind = at.held-common, at.behind-newer
			continue
		}
		absent := g.upto - g.after - p.kept
		sure := min(newer, max(0, absent-max(0, of.after-g.after)))
		at.behind, at.unsure = at.behind-sure, min(newer, absent)-sure
		if at.merged = common > 0; at.merged {
			at.known = p.is(c.Limit) && g.after > 0 && common == c.Cost
			at.held = min(at.held, p.kept)
		}
	}
	return at
}

// giveBackTo gives permits of a charge back to a part, as far as the part holds them and they have
// not come back. It reports whether the part changes, and how many permits may still have counted
// but were not given back. If the part is overdrawn, it does not give back permits that come before
// the reservations of others, because those callers were already told how long to wait. The state
// cannot tell reservations from debt, so these permits are lost. For a turn, they are those that
// stay.
func (c *Charge) giveBackTo(p *part, charged int64, overdrawn bool) (changed bool, lost int64) {
	at := c.spotIn(p, charged)
	held, back := at.held, int64(0)
	if overdrawn {
		held -= at.behind
	}
	if at.known {
		back = p.comesBack(held, at.behind)
	}
	lost = ceilDiv(p.comesBack(at.held, at.behind-at.unsure)-back, p.permit)
	if back == 0 {
		return false, lost
	}
	p.used -= back
	if p.is(c.Limit) && p.own < lasting {
		p.own = max(0, p.own-held)
	}
	switch of := (gap{c.newest() - c.Cost, c.newest()}); {
	case at.merged:
		p.kept -= held
	case overdrawn:
		p.addGap(gap{of.upto - held, of.upto}, charged)
	default:
		p.addGap(of, charged)
	}
	return true, lost
}

// comesBack returns how many units a part gets back for held permits if behind others were charged
// later.
func (p *part) comesBack(held, behind int64) int64 {
	if held <= 0 || behind >= ceilDiv(p.used, p.permit) {
		return 0
	}
	back := p.used - behind*p.permit
	if held < ceilDiv(back, p.permit) {
		return held * p.permit
	}
	return back
}
