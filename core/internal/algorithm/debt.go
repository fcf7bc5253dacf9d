package algorithm

import "math"

// MaxInUse is the largest number of permits of one counter that can be in use, so that the number of
// a sub-window fits in five bytes.
const MaxInUse = 1<<40 - 1

// Debt returns how many more permits than the limit lets through may be in use because costs were
// charged that did not fit. share is a multiple of the limit's largest number of permits.
func (l *Limit) Debt(share float64) int64 {
	most := int64(MaxInUse)
	if l.Permit > 0 {
		most = min(most, l.bound(math.MaxInt64)/l.Permit)
	}
	return int64(min(math.Floor(float64(l.Max)*share), float64(most-l.Max)))
}

// CanBeInDebt reports whether costs that do not fit can be charged to the limit.
func (l *Limit) CanBeInDebt() bool { return registry[l.Kind].Debts }

// ChargeInDebt charges a cost whether it fits or not, as far as the bound of the debt allows: see
// Debt. v.Taken is how much was charged. ChargeInDebt returns for how long the state counts
// afterwards, or 0 if nothing was charged.
func (l *Limit) ChargeInDebt(s *State, now, cost int64, share float64, v *Verdict) (lives int64) {
	d := &registry[l.Kind]
	t := moment{now, d.place(now, l)}
	if s.At > t.place {
		s = l.anchored(s, t, cost > 0)
	}
	remaining, _ := d.look(s, t, l, 0)
	*v = Verdict{At: now, Remaining: max(0, remaining)}
	cost = min(cost, remaining+l.Debt(share))
	if cost <= 0 {
		v.ResetAfter = d.resetAfter(s, t, l)
		return 0
	}
	lives = v.charge(d.charge(s, t, l, cost, ""), cost)
	v.Remaining = max(0, v.Remaining)
	return lives
}
