package algorithm

import (
	"math"
	"math/bits"
)

// maxUnits bounds the units of a bucket, debts included, so that both engines add them exactly: a double is exact to 2^53.
const maxUnits = 1 << 52

type tokenBucket struct{}

func (tokenBucket) tag() string { return "tb1" }

func (tokenBucket) place(now int64, l *Limit) int64 {
	if l.Tick == 1 {
		return now
	}
	return now / l.Tick
}

// anchor lets the refill go on from now.
func (tokenBucket) anchor(s *State, place int64, l *Limit) {
	s.At, s.Used, s.More = place, s.usedUnits(l), l.rate
}

// usedUnits is what was used when the state was written, in the units of this limit.
func (s *State) usedUnits(l *Limit) int64 {
	used := s.Used
	if used > 0 && s.More.Own != l.Permit {
		used = rescale(used, s.More.Own, l.Permit)
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

// usedNow is what is used now, after the refill. When all of it has come back at the rate that it was used at, which may be
// another by now, it has come back for everybody, whether the entry is gone or not.
func (s *State) usedNow(t moment, l *Limit) int64 {
	if s.Used == 0 {
		return 0
	}
	ticks := t.place - s.At
	if s.sameRate(l) {
		return unrefilled(s.Used, ticks, l.Refill)
	}
	if ticks >= ceilDiv(s.Used, s.More.Until) {
		return 0
	}
	return unrefilled(s.usedUnits(l), ticks, l.Refill)
}

// sameRate says whether Used was written at the rate of this limit. Nearly always it was, and then nothing needs to be rescaled,
// and nothing can be more than mostUnits.
func (s *State) sameRate(l *Limit) bool { return s.More == l.rate || *s.More == *l.rate }

// unrefilled is what remains used after so many ticks. The product is 128 bits: a bucket may lie idle for long.
func unrefilled(used, ticks, refill int64) int64 {
	high, back := bits.Mul64(uint64(ticks), uint64(refill))
	if high > 0 || back >= uint64(used) {
		return 0
	}
	return used - int64(back)
}

// whole is how long at most until what is used now has come back: all of it, at the rate that it was used at.
func (s *State) whole(t moment, l *Limit, used int64) int64 {
	switch {
	case used == 0 && (s.Used == 0 || t.place-s.At >= ceilDiv(s.Used, s.More.Until)):
		return math.MaxInt64
	case s.sameRate(l):
		return l.refilledAfter(used, t)
	}
	return (s.At+ceilDiv(s.Used, s.More.Until))*l.Tick - t.now
}

// rescale counts what was used under another rate in units of this one, the last fraction of a permit rounded up. It
// calculates in doubles, step by step, because Lua does: the two must round alike.
func rescale(used, from, to int64) int64 {
	whole := used / from
	fraction := math.Ceil(float64(float64(used-whole*from)*float64(to)) / float64(from))
	units := float64(float64(whole)*float64(to)) + math.Min(float64(to), fraction)
	return int64(math.Min(units, maxUnits))
}

func (tokenBucket) look(s *State, t moment, l *Limit, cost int64) (remaining, retryAfter int64) {
	used := s.usedNow(t, l)
	if missing := used + (cost-l.Max)*l.Permit; missing > 0 {
		retryAfter = min(s.whole(t, l, used), l.refilledAfter(missing, t))
	}
	return l.left(used), retryAfter
}

func (tokenBucket) resetAfter(s *State, t moment, l *Limit) int64 {
	used := s.usedNow(t, l)
	if used == 0 {
		return 0
	}
	return min(s.whole(t, l, used), l.refilledAfter(used, t))
}

func (tokenBucket) charge(s *State, t moment, l *Limit, cost int64, _ string) (resetAfter, position int64) {
	s.Used = s.usedNow(t, l) + cost*l.Permit
	s.At = t.place
	if s.More != l.rate { // a pointer that need not be written is one that the garbage collector need not hear of
		s.More = l.rate
	}
	return l.refilledAfter(s.Used, t), 0
}

// refilledAfter is how long until so many units have come back, counted in whole ticks.
func (l *Limit) refilledAfter(units int64, t moment) int64 {
	return (t.place+ceilDiv(units, l.Refill))*l.Tick - t.now
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
	t := moment{now, tokenBucket{}.place(now, l)}
	if s.At > t.place {
		s = l.anchored(s, t.place, cost > 0)
	}
	used := s.usedNow(t, l)
	v := Verdict{At: now, Remaining: l.left(used), ResetAfter: tokenBucket{}.resetAfter(s, t, l)}
	if early := used + l.Permit - l.Max*l.Permit; early > 0 && cost > 0 {
		v.Wait = l.refilledAfter(early, t)
	}
	v.RetryAfter = max(0, v.Wait-patience)
	if over := used + cost*l.Permit - l.mostUnits(); over > 0 {
		v.RetryAfter = max(v.RetryAfter, l.refilledAfter(over, t))
	}
	if v.RetryAfter > 0 {
		v.RetryAfter = min(s.whole(t, l, used), v.RetryAfter)
	}
	if cost > 0 && v.RetryAfter == 0 {
		v.ResetAfter, v.Position = tokenBucket{}.charge(s, t, l, cost, "")
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
	if s.More == nil || *s.More != *l.rate || s.At > at || since < 0 || since >= ticks {
		return
	}
	cost, refilled := c.Cost*l.Permit, since*l.Refill
	usedThen := (ticks-1)*l.Refill + 1
	used := s.usedNow(moment{now, at}, l)
	back := cost - max(0, refilled-max(0, usedThen-cost))
	if usedThen > l.Max*l.Permit {
		back = min(back, cost-max(0, used+refilled-usedThen))
	}
	if back > 0 {
		s.At, s.Used = at, max(0, used-back)
	}
}
