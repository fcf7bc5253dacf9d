package algorithm

import (
	"errors"
	"math"
	"math/bits"
)

const (
	// maxUnits bounds the units of a bucket, including debts, so that both stores add them
	// exactly: a double is exact up to 2^53.
	maxUnits = 1 << 52
	// firstPositions is the limit below which positions begin: see token_bucket_state.lua.
	firstPositions = 1 << 51
	// maxRefill is the longest time that an empty bucket takes to fill, in microseconds: 71 years.
	maxRefill = 1 << 51
	// debt is how far a bucket may be overdrawn, as a multiple of its rate. A limit must be small
	// enough for that.
	debt = 10
	// coarseFrom is the window from which a bucket counts milliseconds, so that its units stay few.
	coarseFrom = 3600 * 1_000_000
	// longestWord is how long the word of a bucket is valid, in microseconds: short enough that no
	// sum overflows.
	longestWord = 1_000_000
)

// ErrTooLarge means that a bucket cannot be counted exactly.
var ErrTooLarge = errors.New("too large to be counted exactly with this window: a smaller burst, or a rounder number, can be")

type tokenBucket struct{ defaults }

// Rate says how fast a bucket refills. A permit is divided into units such that a whole number of
// units comes back per tick.
type Rate struct {
	Permit   int64 // units of one permit
	Refill   int64 // units that come back per tick
	Tick     int64 // microseconds
	Reserved int64 // the most permits that one reservation can take
}

func (*tokenBucket) properties() Properties {
	return Properties{
		Name: "TokenBucket", Text: "burst", File: "token_bucket", Tag: "tb3", MaxPermits: MaxPermits, Burst: true, Debts: true, Reserves: true,
		Remembers: true, Merges: true,
	}
}

// limit makes a bucket that holds Burst permits and gets back Max in each Window.
func (*tokenBucket) limit(t *Terms) (Limit, error) {
	tick := int64(1)
	if t.Window >= coarseFrom && t.Window%1000 == 0 {
		tick = 1000
	}
	divisor := gcd(t.Max, t.Window/tick)
	r := Rate{Permit: t.Window / tick / divisor, Refill: t.Max / divisor, Tick: tick, Reserved: max(t.Burst, debt*t.Max)}
	if t.Burst+debt*t.Max > maxUnits/r.Permit || ceilDiv(t.Burst*r.Permit, r.Refill) > maxRefill/tick {
		return Limit{}, ErrTooLarge
	}
	l := Limit{
		Kind: TokenBucket, Max: t.Burst, Window: t.Window, Rate: r,
		shared: &More{bucket: &bucketParts{permit: r.Permit, refill: r.Refill, burst: t.Burst}},
	}
	return newLimit(l, l.Max, r.Permit, r.Refill, r.Tick), nil
}

func (*tokenBucket) share(l *Limit, part float64) (*Limit, error) {
	rate := l.Window / l.Tick / l.Permit * l.Refill
	shared, err := Make(TokenBucket, Terms{Max: ceilPart(rate, part), Window: l.Window, Burst: ceilPart(l.Max, part)})
	return &shared, err
}

func (*tokenBucket) place(now int64, l *Limit) int64 { return ticks(now, l.Tick) }

// ticks returns the number of whole ticks in a span of microseconds.
func ticks(span, tick int64) int64 {
	if tick == 1 {
		return span
	}
	return span / tick
}

// anchor continues the refill from now on.
func (*tokenBucket) anchor(s *State, t moment, l *Limit) {
	s.At, s.Born = t.place, min(s.Born, t.place*l.Tick)
}

// mostUnits returns how many units of a bucket can be used, including debts. The number must be
// countable exactly, and they must come back within a wait that fits in a time.Duration.
func (l *Limit) mostUnits() int64 { return l.mostAt(l.Refill) }

// mostAt is mostUnits for another rate of the same window.
func (l *Limit) mostAt(refill int64) int64 {
	longest := maxRefill / l.Tick
	if longest > maxUnits/refill {
		return maxUnits
	}
	return longest * refill
}

// simple reports whether the use is a single number at the rate of this limit, as it nearly always
// is.
func (s *State) simple(l *Limit) bool {
	return s.More == l.shared || s.More == nil || s.More.bucket.isOnly(l)
}

// unrefilled returns what remains used after a number of ticks. The product has 128 bits, because a
// bucket may have been idle for long.
func unrefilled(used, ticks, refill int64) int64 {
	high, back := bits.Mul64(uint64(ticks), uint64(refill))
	if high > 0 || back >= uint64(used) {
		return 0
	}
	return used - int64(back)
}

// rescale converts the use under another rate into units of this rate, and rounds the last fraction
// of a permit up. It calculates in doubles, step by step, as Lua does, because both must round
// alike.
func rescale(used, from, to int64) int64 {
	whole := used / from
	fraction := math.Ceil(float64(float64(used-whole*from)*float64(to)) / float64(from))
	units := float64(float64(whole)*float64(to)) + math.Min(float64(to), fraction)
	return int64(math.Min(units, maxUnits))
}

func (*tokenBucket) look(s *State, t moment, l *Limit, cost int64) (remaining, retryAfter int64) {
	used := int64(0)
	if s.simple(l) {
		used = unrefilled(s.Used, t.place-s.At, l.Refill)
	} else if u := s.usage(t, l, new([maxParts + 1]part)[:0]); u.whole > 0 {
		return u.left(l, l.Max), l.afterTicks(min(u.whole, u.wait(l, cost, l.Max)), t)
	}
	if missing := used + (cost-l.Max)*l.Permit; missing > 0 {
		retryAfter = l.refilledAfter(missing, t)
	}
	return l.left(used), retryAfter
}

func (*tokenBucket) resetAfter(s *State, t moment, l *Limit) int64 {
	if !s.simple(l) {
		u := s.usage(t, l, new([maxParts + 1]part)[:0])
		return l.afterTicks(min(u.whole, u.wait(l, l.Max, l.Max)), t)
	}
	if used := unrefilled(s.Used, t.place-s.At, l.Refill); used > 0 {
		return l.refilledAfter(used, t)
	}
	return 0
}

func (b *tokenBucket) charge(s *State, t moment, l *Limit, cost int64, _ string) effect {
	used := int64(0)
	if s.simple(l) {
		used = unrefilled(s.Used, t.place-s.At, l.Refill)
	} else if s.chargeParts(t, l, cost) {
		return effect{resetAfter: b.resetAfter(s, t, l), lives: b.lives(s, t, l), position: s.Charged}
	}
	if used == 0 || s.Charged+cost > maxUnits {
		s.renew(t.now)
	}
	s.At, s.Used, s.Charged = t.place, used+cost*l.Permit, s.Charged+cost
	if s.More != l.shared { // not writing an unchanged pointer saves work for the garbage collector
		s.More = l.shared
	}
	return effect{resetAfter: l.refilledAfter(s.Used, t), position: s.Charged}
}

// renew restarts the positions. Charges made before can no longer be given back.
func (s *State) renew(now int64) { s.Charged, s.Born = now%firstPositions, now }

// refilledAfter returns how long it takes until a number of units have come back, in whole ticks.
func (l *Limit) refilledAfter(units int64, t moment) int64 {
	return l.afterTicks(ceilDiv(units, l.Refill), t)
}

// afterTicks returns how long it takes until a number of ticks have passed.
func (l *Limit) afterTicks(ticks int64, t moment) int64 {
	if ticks <= 0 {
		return 0
	}
	return (t.place+ticks)*l.Tick - t.now
}

func (*tokenBucket) noticeLife(l *Limit, _ *Verdict) int64 {
	return ceilDiv(l.Max*l.Permit, l.Refill) * l.Tick
}

func (b *tokenBucket) reserve(l *Limit, s *State, now, cost, patience int64) (v Verdict, lives int64) {
	t := moment{now, b.place(now, l)}
	if s.At > t.place {
		s = l.anchored(s, t, cost > 0)
	}
	u := s.usage(t, l, new([maxParts + 1]part)[:0])
	v = Verdict{At: now, Remaining: u.left(l, l.Max), ResetAfter: l.afterTicks(min(u.whole, u.wait(l, l.Max, l.Max)), t)}
	if cost > 0 {
		v.Wait = l.afterTicks(u.wait(l, 1, l.Max), t)
	}
	v.RetryAfter = max(0, v.Wait-patience, l.afterTicks(u.wait(l, cost, math.MaxInt64), t))
	if u.whole > 0 {
		v.RetryAfter = min(v.RetryAfter, l.afterTicks(u.whole, t))
	}
	if cost > 0 && v.RetryAfter == 0 {
		lives = v.charge(b.charge(s, t, l, cost, ""), cost)
	}
	v.Remaining = max(0, v.Remaining)
	return v, lives
}

func (*tokenBucket) room(s *State, t moment, l *Limit, debt int64) int64 {
	if !s.simple(l) {
		u := s.usage(t, l, new([maxParts + 1]part)[:0])
		return u.left(l, l.Max+debt)
	}
	most := l.mostUnits()
	if full := l.Max + debt; full <= most/l.Permit {
		most = full * l.Permit
	}
	return floorDiv(most-unrefilled(s.Used, t.place-s.At, l.Refill), l.Permit)
}

// left returns how many whole permits are left.
func (l *Limit) left(used int64) int64 { return floorDiv(l.Max*l.Permit-used, l.Permit) }

// steady returns how long it takes until a permit comes back that changes the permits left.
func (*tokenBucket) steady(l *Limit, v *Verdict, cost int64) int64 {
	ends, before := l.steadyUntil(v, cost)
	if before > 0 {
		ends = max(0, ends-ceilDiv(before*l.Permit, l.Refill)*l.Tick)
	}
	return ends
}

// nextPermit subtracts from ResetAfter the time in which the other missing permits come back. The
// number of units that come back in the last tick is not known, so that may be a tick more or less.
//
// With several rates, ResetAfter is the longest wait in the parts of this rate and of faster ones.
// In each of them, permits come back at least as fast as at this rate. So the next one may come back
// later than computed here, but not earlier. That does not hold if a faster part cannot hold as many
// units as the burst has, because ResetAfter is then the time until no rate is in use.
func (*tokenBucket) nextPermit(l *Limit, v *Verdict) int64 {
	if l.Max > maxUnits/ticks(l.Window, l.Tick) {
		return 0
	}
	others := (l.Max - 1 - v.Remaining) * l.Permit
	switch {
	case v.ResetAfter == 0:
		return l.refilledAfter(l.Permit, moment{v.At, ticks(v.At, l.Tick)})
	case v.Remaining > 0:
		return max(0, v.ResetAfter-ceilDiv(others, l.Refill)*l.Tick)
	default:
		return v.ResetAfter - others/l.Refill*l.Tick
	}
}

func (*tokenBucket) word(l *Limit, s *State, now int64) (w Word, value int64, ok bool) {
	if s.More != l.shared {
		return w, 0, false
	}
	return Word{
		kind: l.Kind, full: l.Max * l.Permit, unit: l.Permit, refill: l.Refill, tick: l.Tick, from: s.At * l.Tick, until: now + longestWord,
		first: s.Charged - ceilDiv(s.Used, l.Permit),
	}, s.Used, true
}

func (*tokenBucket) back(w *Word, value, now int64, s *State) (freshAt int64) {
	passed := ticks(now-w.from, w.tick)
	s.At, s.Used, s.Charged = s.At+passed, unrefilled(value, passed, w.refill), w.position(value)
	return (s.At + ceilDiv(s.Used, w.refill)) * w.tick
}

func gcd(a, b int64) int64 {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}
