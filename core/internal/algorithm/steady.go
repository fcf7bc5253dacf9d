package algorithm

import "math"

// Steady is for how long after v.At an answer to this cost stays what it is, but for its times, which pass: as long as nobody
// charges the counter or gives back, and the clock does not step. It is never too long; where nothing is known it is 0. A refusal is
// steady at most until its RetryAfter. Of a ban that does not hold it is the rest of the window in which it has heard of a
// refusal.
func (l *Limit) Steady(v *Verdict, cost int64) int64 {
	switch {
	case l.Kind == Concurrency:
		return 0
	case l.Kind == Ban && v.RetryAfter == 0 && l.after > 0:
		return l.Window - v.At%l.Window
	case v.RetryAfter == 0 && (v.ResetAfter == 0 || l.Kind == Ban): // fresh, or a ban by hand
		return math.MaxInt64
	}
	ends := v.RetryAfter
	if ends == 0 {
		ends = v.ResetAfter
		cost = l.Max // all that comes back until then
	}
	missing := cost - v.Remaining - 1 // permits that come back before, each of which changes what is left
	if missing <= 0 {
		return ends
	}
	switch l.Kind {
	case SlidingWindow:
		return min(ends, subWindowRest(v.At, l.Window))
	case TokenBucket:
		return max(0, ends-ceilDiv(missing*l.Permit, l.Refill)*l.Tick)
	case SlidingLog:
		return 0
	default: // all comes back at once
		return ends
	}
}

// LeaseLife is for how long after v.At permits that were charged then can be used: as long as each use is counted where it would be if
// it had been charged by itself. 0: this algorithm cannot be leased.
func (l *Limit) LeaseLife(v *Verdict) int64 {
	switch l.Kind {
	case SlidingWindow:
		return subWindowRest(v.At, l.Window)
	case FixedWindow:
		return min(l.Window/subWindows, v.ResetAfter)
	default:
		return 0
	}
}

// LeasedTogether reports whether permits that were charged at two times can be used and given back
// as if they had been charged together.
func (l *Limit) LeasedTogether(a, b *Verdict) bool {
	if l.Kind == SlidingWindow {
		return subWindow(a.At, l.Window) == subWindow(b.At, l.Window)
	}
	return a.At+a.ResetAfter == b.At+b.ResetAfter
}

// Leasable says whether permits of this limit can be taken ahead of their use.
func (l *Limit) Leasable() bool { return l.Kind == SlidingWindow || l.Kind == FixedWindow }

// subWindowRest is how long until the next sub-window begins.
func subWindowRest(now, window int64) int64 {
	return freeAfter(subWindow(now, window)-subWindows, now, window)
}
