package algorithm

import "slices"

// maxGaps is how many separate gaps a part keeps; see token_bucket_state.lua.
const maxGaps = 256

// gap is a range of positions that a part does not use: those greater than after, up to upto.
type gap struct{ after, upto int64 }

// gaps are the gaps of a part.
type gaps struct {
	list []gap // oldest first
	kept int64 // permits within the range of the oldest gap that are not part of the gap
}

// closedGaps returns the gaps of a part to which no charge up to a position can be given back.
func closedGaps(upto int64) gaps { return gaps{[]gap{{0, upto}}, upto} }

// addGap adds a gap and joins it with the gaps that it touches, except a gap whose positions are
// not known.
func (p *part) addGap(g gap, charged int64) {
	if len(p.list) == 0 && charged-g.upto >= ceilDiv(p.used, p.permit) {
		return // trimGaps would drop it
	}
	first, end := 0, len(p.list)
	if p.kept > 0 {
		if oldest := &p.list[0]; g.upto <= oldest.after { // the oldest gap must stay the oldest
			p.kept += oldest.after - g.upto
			oldest.after = g.after
			p.trimGaps(charged)
			return
		}
		first = 1
	}
	for end > first && p.list[end-1].after > g.upto {
		end--
	}
	begin := end
	for ; begin > first && p.list[begin-1].upto >= g.after; begin-- {
		g = gap{min(g.after, p.list[begin-1].after), max(g.upto, p.list[begin-1].upto)}
	}
	p.list = slices.Replace(p.list, begin, end, g)
	p.trimGaps(charged)
}

// trimGaps drops the oldest gaps if all their positions have come back. Then, while there are too
// many, it merges the two oldest.
func (p *part) trimGaps(charged int64) {
	held, used := charged+p.kept, ceilDiv(p.used, p.permit) // held: how many positions no gap has
	for _, g := range p.list {
		held -= g.upto - g.after
	}
	for len(p.list) > 0 && held-p.list[0].after-p.kept >= used {
		held += p.list[0].upto - p.list[0].after - p.kept
		p.list, p.kept = p.list[1:], 0
	}
	for len(p.list) > maxGaps {
		p.kept += p.list[1].after - p.list[0].upto
		p.list[1].after = p.list[0].after
		p.list = p.list[1:]
	}
}
