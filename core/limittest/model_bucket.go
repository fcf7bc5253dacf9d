package limittest

import (
	"math/big"

	"github.com/accesslimit/accesslimit/core"
)

// bucketModel is a token bucket in fractions that nothing rounds.
type bucketModel struct {
	used  big.Rat // permits, when it was last charged
	at    int64   // that time, in ticks
	whole int64   // the tick in which, at the rate of that time, all has come back: so it has then by any other
}

func (m *bucketModel) ask(now int64, l core.Limit, cost int, charge bool) (p prediction) {
	tick := tick(l).Microseconds()
	at := now / tick
	perTick := big.NewRat(int64(l.Max)*tick, l.Window.Microseconds())
	used := m.usedAt(at, l, perTick)

	// after is how long until so many permits have come back, in whole ticks.
	after := func(permits *big.Rat) int64 {
		ticks := ceil(new(big.Rat).Quo(permits, perTick))
		return min(at+ticks, m.whole)*tick - now
	}
	full := new(big.Rat).SetInt64(int64(atOnce(l)))
	needed := new(big.Rat).Add(used, new(big.Rat).SetInt64(int64(cost)))
	if cost > 0 && needed.Cmp(full) > 0 {
		p.retry = after(new(big.Rat).Sub(needed, full))
	} else if charge && cost > 0 {
		used = needed
		m.used.Set(used)
		m.at, m.whole = at, at+ceil(new(big.Rat).Quo(used, perTick))
	}
	p.left = int(floor(new(big.Rat).Sub(full, used)))
	if used.Sign() > 0 {
		p.resetAfter = after(used)
	}
	return p
}

// usedAt is what is not refilled yet. It is counted in parts of a permit of which a whole number comes back each tick, so
// what was used under another rate is rounded up to these: a change of the rate gives nobody anything.
func (m *bucketModel) usedAt(at int64, l core.Limit, perTick *big.Rat) *big.Rat {
	if at >= m.whole {
		return new(big.Rat)
	}
	part := new(big.Rat).SetInt(perTick.Denom())
	inParts := new(big.Rat).Mul(&m.used, part)
	used := new(big.Rat).Quo(new(big.Rat).SetInt64(ceil(inParts)), part)
	refilled := new(big.Rat).Mul(perTick, new(big.Rat).SetInt64(at-m.at))
	if used.Sub(used, refilled).Sign() < 0 {
		used.SetInt64(0)
	}
	return used
}

func floor(r *big.Rat) int64 {
	return new(big.Int).Div(r.Num(), r.Denom()).Int64() // Div rounds down, because a denominator is positive
}

func ceil(r *big.Rat) int64 { return -floor(new(big.Rat).Neg(r)) }
