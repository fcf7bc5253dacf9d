package promise

import (
	"math"
	"math/big"
	"slices"

	"github.com/accesslimit/accesslimit/core"
)

// bucketModel is a token bucket in fractions, without rounding. It counts the use at each rate
// separately.
type bucketModel struct {
	at      int64 // when it was last charged, in ticks
	parts   []bucketPart
	charges int
}

// bucketPart holds what was charged under one rate and under slower ones since that rate was first
// used.
type bucketPart struct {
	perTick *big.Rat
	used    *big.Rat      // permits, at the time of the bucket
	held    []heldPermits // by which charges, the oldest first, whose permits come back first
}

// heldPermits is how many permits of a charge a part holds.
type heldPermits struct{ charge, permits int }

// nobody marks permits that no refund can give back.
const nobody = -1

// since returns the part that is still used this many ticks later.
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
	own, part, whole := m.find(at, perTick)
	used := part.used

	// after returns how long it takes until so many permits have come back, in whole ticks.
	after := func(permits *big.Rat) int64 {
		return (at+min(whole, ceil(new(big.Rat).Quo(permits, perTick))))*tick - now
	}
	full := new(big.Rat).SetInt64(int64(atOnce(l)))
	needed := new(big.Rat).Add(used, new(big.Rat).SetInt64(int64(cost)))
	if cost > 0 && needed.Cmp(full) > 0 {
		p.retry = after(new(big.Rat).Sub(needed, full))
	} else if charge && cost > 0 {
		m.charge(at, own, part, cost)
		used, whole = needed, math.MaxInt64
	}
	p.left = int(floor(new(big.Rat).Sub(full, used)))
	if used.Sign() > 0 {
		p.resetAfter = after(used)
	}
	return p
}

// find returns the index of a rate's own part, or -1; the part as it is now; and the number of
// ticks after which everything is back at the latest. For a rate that the bucket does not know, as
// much is used as for any other rate. It comes back at the new rate, but no later than at the
// others.
func (m *bucketModel) find(at int64, perTick *big.Rat) (own int, part bucketPart, whole int64) {
	own, part = -1, bucketPart{perTick: perTick, used: new(big.Rat)}
	for i := range m.parts {
		p := &m.parts[i]
		whole = max(whole, ceil(new(big.Rat).Quo(p.since(at-m.at), p.perTick)))
		if p.perTick.Cmp(perTick) == 0 {
			own = i
		}
		if rounded := inParts(p.used, perTick); rounded.Cmp(part.used) > 0 {
			part.used, part.held = rounded, slices.Clone(p.held)
		}
	}
	if whole == 0 {
		m.parts = nil
		return -1, bucketPart{perTick: perTick, used: new(big.Rat)}, math.MaxInt64
	}
	if own >= 0 {
		part, whole = m.parts[own], math.MaxInt64
	}
	part.used = part.since(at - m.at)
	return own, part, whole
}

// advance counts what has come back.
func (m *bucketModel) advance(at int64) {
	for i := range m.parts {
		m.parts[i].used = m.parts[i].since(at - m.at)
	}
	m.at = at
}

// charge charges the part of a rate, creating it if needed, and those of faster rates.
func (m *bucketModel) charge(at int64, own int, part bucketPart, cost int) {
	if m.advance(at); own < 0 {
		m.parts = append(m.parts, part)
		slices.SortFunc(m.parts, func(a, b bucketPart) int { return a.perTick.Cmp(b.perTick) })
	}
	for i := range m.parts {
		if p := &m.parts[i]; p.perTick.Cmp(part.perTick) >= 0 {
			p.used = new(big.Rat).Add(p.used, new(big.Rat).SetInt64(int64(cost)))
			p.held = append(p.held, heldPermits{m.charges, cost})
		}
	}
	m.charges++
}

func (m *bucketModel) refund(now int64, l core.Limit, charge, permits int) {
	tick := tick(l).Microseconds()
	at, perTick := now/tick, big.NewRat(int64(l.Max)*tick, l.Window.Microseconds())
	back := make([]*big.Rat, len(m.parts))
	any := false
	for i := range m.parts {
		p := &m.parts[i]
		own := p.perTick.Cmp(perTick) == 0
		back[i] = p.refund(p.since(at-m.at), own, int64(atOnce(l)), charge, permits)
		any = any || back[i].Sign() > 0
	}
	if !any {
		return
	}
	m.advance(at)
	for i := range m.parts {
		p := &m.parts[i]
		p.used = new(big.Rat).Sub(p.used, back[i])
	}
}

// refund removes the newest permits of a charge from those held, and returns how many of the used
// ones come back. Permits that have come back by themselves do not count. In an overdrawn bucket,
// neither do as many as were charged after them, because other callers wait for these.
func (p *bucketPart) refund(used *big.Rat, own bool, full int64, charge, permits int) (back *big.Rat) {
	back = new(big.Rat)
	at := slices.IndexFunc(p.held, func(h heldPermits) bool { return h.charge == charge })
	if at < 0 {
		return back
	}
	behind := 0
	for _, h := range p.held[at+1:] {
		behind += h.permits
	}
	given := permits
	if own && used.Cmp(new(big.Rat).SetInt64(full)) > 0 {
		given -= behind
	}
	back.Sub(used, new(big.Rat).SetInt64(int64(behind)))
	if most := new(big.Rat).SetInt64(int64(given)); back.Cmp(most) > 0 {
		back = most
	}
	if back.Sign() <= 0 {
		back, given = new(big.Rat), 0
	}
	p.held[at].permits -= permits
	p.held = slices.Insert(p.held, at+1, heldPermits{nobody, permits - given})
	return back
}

// inParts rounds up to parts of a permit of which a whole number comes back each tick. So what was
// used at another rate is counted, and a change of the rate creates no permits.
func inParts(permits, perTick *big.Rat) *big.Rat {
	part := new(big.Rat).SetInt(perTick.Denom())
	inParts := new(big.Rat).Mul(permits, part)
	return new(big.Rat).Quo(new(big.Rat).SetInt64(ceil(inParts)), part)
}

func floor(r *big.Rat) int64 {
	// Div rounds down, because a denominator is positive.
	return new(big.Int).Div(r.Num(), r.Denom()).Int64()
}

func ceil(r *big.Rat) int64 { return -floor(new(big.Rat).Neg(r)) }
