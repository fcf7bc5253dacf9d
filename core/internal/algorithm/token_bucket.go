package algorithm

import "math"

// maxUnits bounds the units of a bucket, debts included, so that both engines add them exactly: a double is exact to 2^53.
const maxUnits = 1 << 52

type tokenBucket struct{}

func (tokenBucket) tag() string { return "tb1" }

func (tokenBucket) advance(s *State, now int64, l *Limit) {
	if s.Own != l.Permit {
		s.Used = rescale(s.Used, s.Own, l.Permit)
		s.Own = l.Permit
	}
	// A clock that stepped back leaves no ticks to refill for: the refill goes on from now.
	if ticks := now/l.Tick - s.At; ticks > 0 {
		if ticks >= ceilDiv(s.Used, l.Refill) {
			s.Used = 0
		} else {
			s.Used -= ticks * l.Refill
		}
	}
	s.At = now / l.Tick
}

// rescale counts what was used under another rate in units of this one, the last fraction of a permit rounded up. It
// calculates in doubles, step by step, because Lua does: the two must round alike.
func rescale(used, from, to int64) int64 {
	whole := used / from
	fraction := math.Ceil(float64(float64(used-whole*from)*float64(to)) / float64(from))
	units := float64(float64(whole)*float64(to)) + math.Min(float64(to), fraction)
	return int64(math.Min(units, maxUnits))
}

func (tokenBucket) look(s *State, now int64, l *Limit, cost int64) Verdict {
	v := Verdict{Remaining: floorDiv(l.Max*l.Permit-s.Used, l.Permit)}
	if s.Used > 0 {
		v.ResetAfter = l.refilledAfter(s.Used, now)
	}
	if missing := s.Used + (cost-l.Max)*l.Permit; missing > 0 {
		v.RetryAfter = l.refilledAfter(missing, now)
	}
	return v
}

func (tokenBucket) charge(s *State, now int64, l *Limit, cost int64) int64 {
	s.At, s.Own = now/l.Tick, l.Permit
	s.Used += cost * l.Permit
	return l.refilledAfter(s.Used, now)
}

// refilledAfter is how long until so many units have come back, counted in whole ticks.
func (l *Limit) refilledAfter(units, now int64) int64 {
	return (now/l.Tick+ceilDiv(units, l.Refill))*l.Tick - now
}

func ceilDiv(a, b int64) int64 { return (a + b - 1) / b }

func floorDiv(a, b int64) int64 {
	if a < 0 {
		return -ceilDiv(-a, b)
	}
	return a / b
}
