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

// bucketPart holds what was charged at one rate and at slower rates since that rate was first used.
type bucketPart struct {
	perTick *big.Rat
	used    *big.Rat      // permits, at the time of the bucket
	burst   int           // the burst of the last charged call at exactly this rate
	held    []heldPermits // the charges that hold permits, oldest first; the oldest permits come back first
	first   bool          // it has the rate that was used first
	own     int           // permits charged at exactly this rate and not given back
}

// heldPermits is how many permits of a charge a part holds.
type heldPermits struct{ charge, permits int }

// nobody marks permits that no refund can give back.
const nobody = -1

func whole(n int) *big.Rat { return new(big.Rat).SetInt64(int64(n)) }

// since returns how much of the part is still used this many ticks later.
func (p *bucketPart) since(ticks int64) *big.Rat {
	used := new(big.Rat).Mul(p.perTick, new(big.Rat).SetInt64(-ticks))
	if used.Add(used, p.used).Sign() < 0 {
		used.SetInt64(0)
	}
	return used
}

// ticks returns after how many ticks these permits of the part have come back.
func (p *bucketPart) ticks(permits *big.Rat) int64 {
	return max(0, ceil(new(big.Rat).Quo(permits, p.perTick)))
}

func (m *bucketModel) ask(now int64, l core.Limit, cost int, charge bool) (p prediction) {
	tick := tick(l).Microseconds()
	at := now / tick
	seen, own, rest := m.seenBy(l, at)
	if p.retry = seen.wait(own, l, cost, rest, now); cost == 0 {
		p.retry = 0
	} else if charge && p.retry == 0 {
		for i := own; i < len(seen.parts); i++ {
			of := &seen.parts[i]
			of.used = new(big.Rat).Add(of.used, whole(cost))
			of.held = append(slices.Clone(of.held), heldPermits{m.charges, cost})
		}
		seen.parts[own].own += cost
		seen.charges++
		*m, rest = seen, math.MaxInt64/tick/2
	}
	p.left = math.MaxInt64
	for _, of := range seen.parts[own:] {
		p.left = min(p.left, floor(new(big.Rat).Sub(whole(of.size(l)), of.used)))
	}
	p.resetAfter = seen.wait(own, l, atOnce(l), rest, now)
	return p
}

// size returns how many permits of a part may be in use after a call of a limit.
func (p *bucketPart) size(l core.Limit) int { return max(atOnce(l), p.burst) }

// wait returns how long it takes until a cost fits into a part and all faster ones. It is at most
// rest ticks, after which everything is back.
func (m *bucketModel) wait(own int, l core.Limit, cost int, rest, now int64) int64 {
	ticks := int64(0)
	for _, p := range m.parts[own:] {
		ticks = max(ticks, p.ticks(new(big.Rat).Add(p.used, whole(cost-p.size(l)))))
	}
	if ticks = min(ticks, rest); ticks == 0 {
		return 0
	}
	return (m.at+ticks)*tick(l).Microseconds() - now
}

// perTick returns how many permits of a limit come back in a tick.
func perTick(l core.Limit) *big.Rat {
	return big.NewRat(int64(l.Max)*tick(l).Microseconds(), l.Window.Microseconds())
}

// seenBy returns the bucket at a time as seen by a limit, the index of the part with its rate, and
// after how many ticks everything is back. If the rate is new, a copy of the fullest part is added
// as if the bucket had had it when it was last charged.
func (m *bucketModel) seenBy(l core.Limit, at int64) (seen bucketModel, own int, rest int64) {
	rate := perTick(l)
	for i := range m.parts {
		rest = max(rest, m.parts[i].ticks(m.parts[i].since(at-m.at)))
	}
	seen = bucketModel{at: m.at, charges: m.charges, parts: slices.Clone(m.parts)}
	isOwn := func(p bucketPart) bool { return p.perTick.Cmp(rate) == 0 }
	if rest == 0 {
		seen.parts, rest = []bucketPart{{perTick: rate, used: new(big.Rat), first: true}}, math.MaxInt64/tick(l).Microseconds()/2
	} else if !slices.ContainsFunc(seen.parts, isOwn) {
		seen.parts = append(seen.parts, m.copyOf(rate))
		slices.SortFunc(seen.parts, func(a, b bucketPart) int { return a.perTick.Cmp(b.perTick) })
	}
	seen.advance(at)
	own = slices.IndexFunc(seen.parts, isOwn)
	seen.parts[own].burst = atOnce(l)
	return seen, own, rest
}

// copyOf returns a part with this rate that is a copy of the fullest part.
func (m *bucketModel) copyOf(rate *big.Rat) bucketPart {
	c := bucketPart{perTick: rate, used: new(big.Rat)}
	for _, p := range m.parts {
		if rounded := inParts(p.used, rate); rounded.Cmp(c.used) > 0 {
			c.used, c.held = rounded, slices.Clone(p.held)
		}
	}
	return c
}

// advance counts what has come back.
func (m *bucketModel) advance(at int64) {
	for i := range m.parts {
		m.parts[i].used = m.parts[i].since(at - m.at)
	}
	m.at = at
}

func (m *bucketModel) refund(now int64, l core.Limit, charge, permits int) {
	at, rate := now/tick(l).Microseconds(), perTick(l)
	back := make([]*big.Rat, len(m.parts))
	any, burst := false, 0
	for i := range m.parts {
		p := &m.parts[i]
		burst = max(burst, p.burst)
		given := 0
		back[i], given = p.refund(p.since(at-m.at), burst, charge, permits)
		if any = any || given > 0; p.perTick.Cmp(rate) == 0 {
			p.own -= given
		}
	}
	if !any {
		return
	}
	m.advance(at)
	for i := range m.parts {
		p := &m.parts[i]
		p.used = new(big.Rat).Sub(p.used, back[i])
	}
	m.parts = slices.DeleteFunc(m.parts, func(p bucketPart) bool { return !p.first && p.own == 0 })
}

// refund removes the newest permits of a charge from those held. It returns how many used permits
// come back, and how many are no longer held. Permits that have come back by themselves do not
// count. If the part is overdrawn, as many permits as were charged later do not count either,
// because other callers wait for these.
func (p *bucketPart) refund(used *big.Rat, burst, charge, permits int) (back *big.Rat, given int) {
	back = new(big.Rat)
	at := slices.IndexFunc(p.held, func(h heldPermits) bool { return h.charge == charge })
	if at < 0 {
		return back, 0
	}
	behind := 0
	for _, h := range p.held[at+1:] {
		behind += h.permits
	}
	given = permits
	if used.Cmp(whole(burst)) > 0 {
		given -= behind
	}
	back.Sub(used, whole(behind))
	if most := whole(given); back.Cmp(most) > 0 {
		back = most
	}
	if back.Sign() <= 0 {
		back, given = new(big.Rat), 0
	}
	p.held[at].permits -= permits
	p.held = slices.Insert(p.held, at+1, heldPermits{nobody, permits - given})
	return back, given
}

// inParts rounds up to the fractions of a permit of which a whole number comes back each tick. Use
// at another rate is converted this way, so that a change of the rate creates no permits.
func inParts(permits, perTick *big.Rat) *big.Rat {
	part := new(big.Rat).SetInt(perTick.Denom())
	inParts := new(big.Rat).Mul(permits, part)
	return new(big.Rat).Quo(new(big.Rat).SetInt64(ceil(inParts)), part)
}

func floor(r *big.Rat) int64 {
	// Div rounds down, because the denominator is positive.
	return new(big.Int).Div(r.Num(), r.Denom()).Int64()
}

func ceil(r *big.Rat) int64 { return -floor(new(big.Rat).Neg(r)) }
