package algorithm

import (
	"math"
	"math/bits"
)

// maxUnits bounds the units of a bucket, debts included, so that both engines add them exactly: a double is exact to 2^53.
const maxUnits = 1 << 52

// firstPositions is the limit below which positions begin: see token_bucket_state.lua.
const firstPositions = 1 << 51

type tokenBucket struct{}

func (tokenBucket) tag() string { return "tb2" }

func (tokenBucket) place(now int64, l *Limit) int64 {
	if l.Tick == 1 {
		return now
	}
	return now / l.Tick
}

// anchor lets the refill go on from now.
func (tokenBucket) anchor(s *State, place int64, l *Limit) {
	s.At, s.Born = place, min(s.Born, place*l.Tick)
}

// mostUnits is how far a bucket can be used and overdrawn: as much as is exact, and as comes back while a time.Duration can
// hold the wait.
func (l *Limit) mostUnits() int64 { return l.mostAt(l.Refill) }

// mostAt is mostUnits of another rate of the same window.
func (l *Limit) mostAt(refill int64) int64 {
	longest := maxRefill / l.Tick
	if longest > maxUnits/refill {
		return maxUnits
	}
	return longest * refill
}

// simple reports whether the use is one number, at the rate of this limit. Nearly always it is.
func (s *State) simple(l *Limit) bool { return s.More == l.rate || s.More == nil || *s.More == *l.rate }

// unrefilled is what remains used after so many ticks. The product is 128 bits: a bucket may lie idle for long.
func unrefilled(used, ticks, refill int64) int64 {
	high, back := bits.Mul64(uint64(ticks), uint64(refill))
	if high > 0 || back >= uint64(used) {
		return 0
	}
	return used - int64(back)
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
	if !s.simple(l) {
		u := s.usage(t, l, new([maxParts]part)[:0])
		if missing := u.used + (cost-l.Max)*l.Permit; missing > 0 {
			retryAfter = u.soon(missing, t, l)
		}
		return l.left(u.used), retryAfter
	}
	used := unrefilled(s.Used, t.place-s.At, l.Refill)
	if missing := used + (cost-l.Max)*l.Permit; missing > 0 {
		retryAfter = l.refilledAfter(missing, t)
	}
	return l.left(used), retryAfter
}

func (tokenBucket) resetAfter(s *State, t moment, l *Limit) int64 {
	if !s.simple(l) {
		u := s.usage(t, l, new([maxParts]part)[:0])
		return u.resetAfter(t, l)
	}
	if used := unrefilled(s.Used, t.place-s.At, l.Refill); used > 0 {
		return l.refilledAfter(used, t)
	}
	return 0
}

func (tokenBucket) charge(s *State, t moment, l *Limit, cost int64, _ string) (resetAfter, position int64) {
	used := int64(0)
	if s.simple(l) {
		used = unrefilled(s.Used, t.place-s.At, l.Refill)
	} else if s.chargeParts(t, l, cost) {
		return tokenBucket{}.resetAfter(s, t, l), s.Charged
	}
	if used == 0 || s.Charged+cost > maxUnits {
		s.renew(t.now)
	}
	s.At, s.Used, s.Charged = t.place, used+cost*l.Permit, s.Charged+cost
	if s.More != l.rate { // a pointer that need not be written is one that the garbage collector need not hear of
		s.More = l.rate
	}
	return l.refilledAfter(s.Used, t), s.Charged
}

// renew starts new positions. Charges made before can no longer be given back.
func (s *State) renew(now int64) { s.Charged, s.Born = now%firstPositions, now }

// Lives returns for how long a state counts that was charged just now. In a bucket of several rates
// that can be longer than the verdict's ResetAfter, which is for one of them.
func (l *Limit) Lives(s *State, now int64, v *Verdict) int64 {
	if l.Kind != TokenBucket || s.simple(l) {
		return v.ResetAfter
	}
	return (s.At+ticksUntilFresh(*s.More.Parts))*l.Tick - now
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
	u := s.usage(t, l, new([maxParts]part)[:0])
	v := Verdict{At: now, Remaining: l.left(u.used), ResetAfter: u.resetAfter(t, l)}
	if early := u.used + l.Permit - l.Max*l.Permit; early > 0 && cost > 0 {
		v.Wait = l.refilledAfter(early, t)
	}
	v.RetryAfter = max(0, v.Wait-patience)
	if over := u.used + cost*l.Permit - l.mostUnits(); over > 0 {
		v.RetryAfter = max(v.RetryAfter, l.refilledAfter(over, t))
	}
	if v.RetryAfter > 0 && u.whole > 0 {
		v.RetryAfter = min(v.RetryAfter, (t.place+u.whole)*l.Tick-now)
	}
	if cost > 0 && v.RetryAfter == 0 {
		v.ResetAfter, v.Position = tokenBucket{}.charge(s, t, l, cost, "")
		v.Remaining = l.left(u.used + cost*l.Permit)
	}
	return v
}

// left is how many whole permits are left.
func (l *Limit) left(used int64) int64 { return max(0, floorDiv(l.Max*l.Permit-used, l.Permit)) }

// giveBack takes the permits out of all parts that hold them. The newest of a charge that is given back in several steps go first.
func (tokenBucket) giveBack(s *State, now int64, c *Charge) {
	at, born := now/c.Limit.Tick, s.Born
	if s.At > at {
		born = min(born, at*c.Limit.Tick)
	}
	parts := s.appendParts(new([maxParts]part)[:0])
	if c.At < born || c.place() > s.Charged || !refill(parts, max(0, at-s.At)) {
		return
	}
	changed := false
	for i := range parts {
		changed = c.giveBackTo(&parts[i], s.Charged) || changed
	}
	if changed {
		s.At, s.Born = at, born
		s.setParts(parts, c.Limit)
	}
}
