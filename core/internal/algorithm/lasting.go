package algorithm

import "math"

// Steady returns for how long after v.At an answer to this cost stays what it is, except for its
// times, which pass: as long as nobody charges the counter or gives back, and the clock does not
// step. It is never too long, and 0 if nothing is known. A refusal is steady at most until its
// RetryAfter. Of a ban that does not hold, it is the rest of the window in which a refusal was
// counted.
func (l *Limit) Steady(v *Verdict, cost int64) int64 {
	return registry[l.Kind].steady(l, v, cost)
}

// steadyUntil returns for how long an answer to a cost is steady if nothing comes back before its
// end. It also returns how many permits come back before then, one after the other: each of them
// changes what is left. If that is not above 0, the answer is steady for that long.
func (l *Limit) steadyUntil(v *Verdict, cost int64) (ends, before int64) {
	switch {
	case v.RetryAfter > 0:
		return v.RetryAfter, cost - v.Remaining - 1
	case v.ResetAfter == 0: // fresh
		return math.MaxInt64, 0
	default:
		return v.ResetAfter, l.Max - v.Remaining - 1
	}
}

// Leasable reports whether permits of this limit can be charged ahead of their use.
func (l *Limit) Leasable() bool { return registry[l.Kind].Leases }

// LeaseLife returns for how long after v.At permits that were charged then can be used: as long as
// each use counts where it would if it had been charged by itself. It is 0 if this algorithm cannot
// be leased.
func (l *Limit) LeaseLife(v *Verdict) int64 { return registry[l.Kind].leaseLife(l, v) }

// LeasedTogether reports whether permits that were charged at two times can be used and given back
// as if they had been charged together.
func (l *Limit) LeasedTogether(a, b *Verdict) bool {
	return registry[l.Kind].leasedTogether(l, a, b)
}
