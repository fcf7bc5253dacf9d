package limittest

import (
	"math"
	"math/big"

	"github.com/accesslimit/accesslimit/core"
)

// bucketModel is a token bucket in fractions that nothing rounds. What was used is kept for each rate by itself.
type bucketModel struct {
	at    int64 // when it was last charged, in ticks
	parts []bucketPart
}

// bucketPart is what was charged under one rate and under slower ones since that rate was first used.
type bucketPart struct {
	perTick *big.Rat
	used    *big.Rat // permits, at the time of the bucket
}

// since is what of the part is still used so many ticks later.
func (p *bucketPart) since(ticks int64) *big.Rat {
	used := new(big.Rat).Mul(p.perTick, new(big.Rat).SetInt64(-ticks))
	if used.Add(used, p.used).Sign() < 0 {
		used.SetInt64(0)
	}
	return used
}

func (m *bucketModel) ask(now int64, l core.Limit, cost int, charge bool) (p prediction) {
	tick := tick(l).Microseconds()
	at := now / tick
	perTick := big.NewRat(int64(l.Max)*tick, l.Window.Microseconds())
	own, used, whole := m.find(at, perTick)

	// after is how long until so many permits have come back, in whole ticks.
	after := func(permits *big.Rat) int64 {
		return (at+min(whole, ceil(new(big.Rat).Quo(permits, perTick))))*tick - now
	}
	full := new(big.Rat).SetInt64(int64(atOnce(l)))
	needed := new(big.Rat).Add(used, new(big.Rat).SetInt64(int64(cost)))
	if cost > 0 && needed.Cmp(full) > 0 {
		p.retry = after(new(big.Rat).Sub(needed, full))
	} else if charge && cost > 0 {
		m.charge(at, own, bucketPart{perTick, used}, cost)
		used, whole = needed, math.MaxInt64
	}
	p.left = int(floor(new(big.Rat).Sub(full, used)))
	if used.Sign() > 0 {
		p.resetAfter = after(used)
	}
	return p
}

// find is the place of a rate's own part, or -1; what is used by it; and in how many ticks everything is back at the latest. A rate that
// the bucket does not know finds as much used as any other, and that comes back at its own rate: but not later than it does at the
// others.
func (m *bucketModel) find(at int64, perTick *big.Rat) (own int, used *big.Rat, whole int64) {
	own, used = -1, new(big.Rat)
	for i := range m.parts {
		p := &m.parts[i]
		whole = max(whole, ceil(new(big.Rat).Quo(p.since(at-m.at), p.perTick)))
		if p.perTick.Cmp(perTick) == 0 {
			own = i
		}
		if rounded := inParts(p.used, perTick); rounded.Cmp(used) > 0 {
			used = rounded
		}
	}
	if whole == 0 {
		m.parts = nil
		return -1, new(big.Rat), math.MaxInt64
	}
	if own >= 0 {
		return own, m.parts[own].since(at - m.at), math.MaxInt64
	}
	part := bucketPart{perTick, used}
	return own, part.since(at - m.at), whole
}

// charge charges the part of a rate, which is a new one where there is none, and those of faster rates.
func (m *bucketModel) charge(at int64, own int, part bucketPart, cost int) {
	for i := range m.parts {
		m.parts[i].used = m.parts[i].since(at - m.at)
	}
	if m.at = at; own < 0 {
		m.parts = append(m.parts, part)
	}
	for i := range m.parts {
		if p := &m.parts[i]; p.perTick.Cmp(part.perTick) >= 0 {
			p.used = new(big.Rat).Add(p.used, new(big.Rat).SetInt64(int64(cost)))
		}
	}
}

// inParts rounds up to parts of a permit of which a whole number comes back each tick: so what was used under another rate is counted,
// and a change of the rate gives nobody anything.
func inParts(permits, perTick *big.Rat) *big.Rat {
	part := new(big.Rat).SetInt(perTick.Denom())
	inParts := new(big.Rat).Mul(permits, part)
	return new(big.Rat).Quo(new(big.Rat).SetInt64(ceil(inParts)), part)
}

func floor(r *big.Rat) int64 {
	return new(big.Int).Div(r.Num(), r.Denom()).Int64() // Div rounds down, because a denominator is positive
}

func ceil(r *big.Rat) int64 { return -floor(new(big.Rat).Neg(r)) }
