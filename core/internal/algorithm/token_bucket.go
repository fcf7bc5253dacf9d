package algorithm

import "math"

// maxUnits bounds the units of a bucket, debts included, so that both engines add them exactly: a double is exact to 2^53.
const maxUnits = 1 << 52

type tokenBucket struct{}

func (tokenBucket) tag() string { return "tb1" }

func (tokenBucket) place(now int64, l *Limit) int64 { return now / l.Tick }

// anchor lets the refill go on from now.
func (tokenBucket) anchor(s *State, place int64, l *Limit) {
	s.At, s.Used, s.Own, s.More = place, s.usedUnits(l), l.Permit, l.Refill
}

// usedUnits is what was used when the state was written, in the units of this limit.
func (s *State) usedUnits(l *Limit) int64 {
	used := s.Used
	if s.Own != l.Permit && used > 0 {
		used = rescale(used, s.Own, l.Permit)
	}
	return min(used, l.mostUnits()) // a rate that was lowered far leaves nobody waiting longer than 71 years
}

// mostUnits is how far a bucket can be used and overdrawn: as much as is exact, and as comes back while a time.Duration can
// hold the wait.
func (l *Limit) mostUnits() int64 {
	longest := maxRefill / l.Tick
	if longest > maxUnits/l.Refill {
		return maxUnits
	}
	return longest * l.Refill
}

// usedNow is what is used now, after the refill, and how long at most until all of it has come back: at the rate that it was
// used at, which may be another by now. When that is over all has come back for everybody, whether the entry is gone or not.
func (s *State) usedNow(now int64, l *Limit) (used, whole int64) {
	if s.Used == 0 {
		return 0, math.MaxInt64
	}
	if whole = (s.At+ceilDiv(s.Used, s.More))*l.Tick - now; whole <= 0 {
		return 0, math.MaxInt64
	}
	used, ticks := s.usedUnits(l), now/l.Tick-s.At
	if ticks >= ceilDiv(used, l.Refill) {
		return 0, whole
	}
	return used - ticks*l.Refill, whole
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
	used, whole := s.usedNow(now, l)
	v := Verdict{Remaining: l.left(used)}
	if used > 0 {
		v.ResetAfter = min(whole, l.refilledAfter(used, now))
	}
	if missing := used + (cost-l.Max)*l.Permit; missing > 0 {
		v.RetryAfter = min(whole, l.refilledAfter(missing, now))
	}
	return v
}

func (tokenBucket) charge(s *State, now int64, l *Limit, cost int64, _ string) int64 {
	used, _ := s.usedNow(now, l)
	s.Used = used + cost*l.Permit
	s.At, s.Own, s.More = now/l.Tick, l.Permit, l.Refill
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

// Reserve takes a cost at the next turn, if that comes within patience: the turn of one permit, for the rest of a large cost is
// paid by who comes next. It is not taken where the verdict has a RetryAfter.
func (l *Limit) Reserve(s *State, now, cost, patience int64) Verdict {
	s = l.anchored(s, now, cost > 0)
	used, whole := s.usedNow(now, l)
	v := Verdict{At: now, Remaining: l.left(used)}
	if used > 0 {
		v.ResetAfter = min(whole, l.refilledAfter(used, now))
	}
	if early := used + l.Permit - l.Max*l.Permit; early > 0 && cost > 0 {
		v.Wait = l.refilledAfter(early, now)
	}
	v.RetryAfter = max(0, v.Wait-patience)
	if over := used + cost*l.Permit - l.mostUnits(); over > 0 {
		v.RetryAfter = max(v.RetryAfter, l.refilledAfter(over, now))
	}
	if v.RetryAfter > 0 {
		v.RetryAfter = min(whole, v.RetryAfter)
	}
	if cost > 0 && v.RetryAfter == 0 {
		v.ResetAfter = engines[TokenBucket].charge(s, now, l, cost, "")
		v.Remaining = l.left(s.Used)
	}
	return v
}

// left is how many whole permits are left.
func (l *Limit) left(used int64) int64 { return max(0, floorDiv(l.Max*l.Permit-used, l.Permit)) }

// giveBack gives back neither what has come back since by itself, nor, of a bucket that the charge overdrew, what others who
// wait behind it have been told to wait for.
func (tokenBucket) giveBack(s *State, now int64, c *Charge) {
	l := c.Limit
	at, charged := now/l.Tick, c.At/l.Tick
	ticks := (c.At+c.Reset)/l.Tick - charged // in which all that was used after the charge has come back
	since := at - charged                    // negative when the clock stepped back: then nobody knows what has come back
	if s.Own != l.Permit || s.More != l.Refill || s.At > at || since < 0 || since >= ticks {
		return
	}
	cost, refilled := c.Cost*l.Permit, since*l.Refill
	usedThen := (ticks-1)*l.Refill + 1
	used, _ := s.usedNow(now, l)
	back := cost - max(0, refilled-max(0, usedThen-cost))
	if usedThen > l.Max*l.Permit {
		back = min(back, cost-max(0, used+refilled-usedThen))
	}
	if back > 0 {
		s.At, s.Used = at, max(0, used-back)
	}
}
