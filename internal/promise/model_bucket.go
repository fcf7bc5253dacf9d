package promise

import (
	"math"
	"math/big"

	"github.com/accesslimit/accesslimit/core"
)

// bucketModel is a token bucket in fractions, without rounding. It has one rate, that of the call.
type bucketModel struct {
	at       int64    // when it was last charged, in ticks
	used     *big.Rat // permits, then; nil: none
	perTick  *big.Rat // the rate of the last charge
	position int      // how many permits were charged in all
	charges  []bucketCharge
	first    int // the first charge since the bucket was fresh
}

// bucketCharge is what a call was charged, and the position of its last permit. The permits in use have
// the last positions.
type bucketCharge struct{ permits, position int }

func whole(n int) *big.Rat { return new(big.Rat).SetInt64(int64(n)) }

// seenBy returns what is used at a time, as a limit sees it, and after how many ticks everything is back
// because the rate of the last charge says so.
func (m *bucketModel) seenBy(l core.Limit, at int64) (used *big.Rat, rest int64) {
	rate := perTick(l)
	never := math.MaxInt64 / tick(l).Microseconds() / 2
	if m.used == nil {
		return new(big.Rat), never
	}
	used, rest = m.used, never
	if m.perTick.Cmp(rate) != 0 {
		if rest = m.at + ceil(new(big.Rat).Quo(m.used, m.perTick)) - at; rest <= 0 {
			return new(big.Rat), never
		}
		used = inParts(used, rate)
	}
	return unrefilled(used, rate, at-m.at), rest
}

// unrefilled returns what remains used after a number of ticks.
func unrefilled(used, perTick *big.Rat, ticks int64) *big.Rat {
	left := new(big.Rat).Mul(perTick, new(big.Rat).SetInt64(-ticks))
	if left.Add(left, used).Sign() < 0 {
		left.SetInt64(0)
	}
	return left
}

func (m *bucketModel) ask(now int64, l core.Limit, cost int, charge bool) (p prediction) {
	tick := tick(l).Microseconds()
	at, rate := now/tick, perTick(l)
	used, rest := m.seenBy(l, at)
	after := func(permits *big.Rat) int64 {
		if permits.Sign() <= 0 {
			return 0
		}
		return (at+min(rest, ceil(new(big.Rat).Quo(permits, rate))))*tick - now
	}
	if p.retry = after(new(big.Rat).Add(used, whole(cost-atOnce(l)))); cost == 0 {
		p.retry = 0
	} else if charge && p.retry == 0 {
		if used.Sign() == 0 {
			m.first = len(m.charges)
		}
		used, rest = new(big.Rat).Add(used, whole(cost)), math.MaxInt64/tick/2
		m.at, m.used, m.perTick, m.position = at, used, rate, m.position+cost
		m.charges = append(m.charges, bucketCharge{cost, m.position})
	}
	p.left = floor(new(big.Rat).Sub(whole(atOnce(l)), used))
	p.resetAfter = after(used)
	return p
}

// perTick returns how many permits of a limit come back in a tick.
func perTick(l core.Limit) *big.Rat {
	return big.NewRat(int64(l.Max)*tick(l).Microseconds(), l.Window.Microseconds())
}

// refund gives back permits of a charge: the oldest in use, and not more than are in use up to the charge.
// If more than the burst is in use, somebody may wait behind others: then only the last charge comes back,
// and only whole.
func (m *bucketModel) refund(now int64, l core.Limit, charge, permits int) {
	at, of := now/tick(l).Microseconds(), m.charges[charge]
	if m.used == nil || charge < m.first {
		return
	}
	used, behind := unrefilled(m.used, m.perTick, at-m.at), m.position-of.position
	back := new(big.Rat).Sub(used, whole(behind))
	if most := whole(permits); back.Cmp(most) > 0 {
		back = most
	}
	if overdrawn := used.Cmp(whole(atOnce(l))) > 0; overdrawn && (behind > 0 || permits < of.permits) || back.Sign() <= 0 {
		return
	} else if overdrawn {
		m.position -= permits
	}
	m.at, m.used = at, used.Sub(used, back)
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
