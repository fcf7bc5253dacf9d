package algorithm

import "math"

// lasting says how long after a verdict something holds, in microseconds. 0: it is not known, or does not
// hold at all.
type lasting struct {
	answer int64 // see Limit.Steady
	lease  int64 // see Limit.LeaseLife
	permit int64 // see Limit.NextPermit, of a verdict from the store
	notice int64 // see Limit.NoticeLife
}

// Steady returns for how long after v.At the answer to a call of this cost stays the same, apart
// from its waits, which shrink. It assumes that nobody charges the counter or gives back, and that
// the clock does not step. The result is never too long, and 0 if nothing is known. A refusal is
// steady at most until its RetryAfter.
func (l *Limit) Steady(v *Verdict, cost int64) int64 {
	return registry[l.Kind].lasting(l, v, cost).answer
}

// steadyUntil returns after how long the answer to a cost ends by itself, and how many permits may
// come back one by one before that. Each of them changes the answer. If there are none (0 or less),
// the answer is steady until it ends.
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

// LeaseLife returns for how long after v.At permits charged then can be used. A permit can be used
// as long as it counts for the same time as if it had been charged at its use. LeaseLife returns 0
// if this algorithm cannot be leased.
func (l *Limit) LeaseLife(v *Verdict) int64 { return registry[l.Kind].lasting(l, v, 1).lease }

// NextPermit returns how long after v.At the next permit comes back, if none is given back. v is the
// verdict on a call that passed. While permits are left, the result is never too long. A caller who
// uses permits meanwhile does not change that: by then, at most v.Remaining of them fit. If none is
// left, the result is never too short, except for a bucket that is used at several rates. It is 0 if
// the time is not known, as if the store did not decide this call itself.
func (l *Limit) NextPermit(v *Verdict) int64 {
	if v.From != FromStore {
		return 0
	}
	return registry[l.Kind].lasting(l, v, 1).permit
}

// onlyUse reports whether the call of a verdict used all that is used of the limit.
func (l *Limit) onlyUse(v *Verdict) bool { return l.Max-v.Remaining == v.Taken }

// NoticeLife returns for how long after v.At a threshold is not reported again once a charge with
// this verdict has reached it. That is until the end of the window if all permits come back then,
// and otherwise a whole window. The window of a bucket is the time that an empty bucket takes to
// fill.
func (l *Limit) NoticeLife(v *Verdict) int64 { return registry[l.Kind].lasting(l, v, 1).notice }

// LeasedTogether reports whether permits that were charged at two times can be used and given back
// as if they had been charged together.
func (l *Limit) LeasedTogether(a, b *Verdict) bool {
	leases := registry[l.Kind].leases
	return leases != nil && leases.leasedTogether(l, a, b)
}
