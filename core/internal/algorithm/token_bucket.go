package algorithm

import "math"

// maxUnits bounds the units of a bucket, debts included, so that both engines add them exactly: a double is exact to 2^53.
const maxUnits = 1 << 52

type tokenBucket struct{}

func (tokenBucket) tag() string { return "tb1" }

func (tokenBucket) place(now int64, l *Limit) int64 { return now / l.Tick }

// anchor lets the refill go on from now.
func (tokenBucket) anchor(s *State, place int64, l *Limit) {
	s.At, s.Used, s.Own = place, s.usedUnits(l), l.Permit
}

// usedUnits is what was used when the state was written, in the units of this limit.
func (s *State) usedUnits(l *Limit) int64 {
	used := s.Used
	if s.Own != l.Permit && used > 0 {
		used = rescale(used, s.Own, l.Permit)
	}
	// A rate that was lowered far leaves nobody waiting longer than 71 years, which a time.Duration can hold.
	if longest := maxRefill / l.Tick; used/l.Refill >= longest {
		used = longest * l.Refill
	}
	return used
}

// usedNow is what is used now, after the refill.
func (s *State) usedNow(now int64, l *Limit) int64 {
	used := s.usedUnits(l)
	ticks := now/l.Tick - s.At
	if ticks >= ceilDiv(used, l.Refill) {
		return 0
	}
	return used - ticks*l.Refill
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
	used := s.usedNow(now, l)
	v := Verdict{Remaining: floorDiv(l.Max*l.Permit-used, l.Permit)}
	if used > 0 {
		v.ResetAfter = l.refilledAfter(used, now)
	}
	if missing := used + (cost-l.Max)*l.Permit; missing > 0 {
		v.RetryAfter = l.refilledAfter(missing, now)
	}
	return v
}

func (tokenBucket) charge(s *State, now int64, l *Limit, cost int64) int64 {
	s.Used = s.usedNow(now, l) + cost*l.Permit
	s.At, s.Own = now/l.Tick, l.Permit
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
