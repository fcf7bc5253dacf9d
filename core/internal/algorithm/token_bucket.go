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
	// firstPositions is the limit below which positions begin: see token_bucket.lua.
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

type tokenBucket struct{}

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
		Name: "TokenBucket", Text: "burst", File: "token_bucket", Tag: "tb4", MaxPermits: MaxPermits, Burst: true, Debts: true,
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
	l := Limit{Kind: TokenBucket, Max: t.Burst, Window: t.Window, Rate: r, shared: &More{rate: &r}}
	return newLimit(l), nil
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

// bound returns how many units of a bucket that holds full permits can be used. The number must be
// countable exactly, and they must come back within a wait that fits in a time.Duration.
func (l *Limit) bound(full int64) int64 {
	most := min(maxUnits, saturated(maxRefill/l.Tick, l.Refill))
	if full > most/l.Permit {
		return most
	}
	return full * l.Permit
}

// saturated returns a product, or a larger number than any state holds.
func saturated(a, b int64) int64 {
	if a > maxUnits/b {
		return maxUnits
	}
	return a * b
}

// inUse returns what is used at a time, in units of a limit, and after how many ticks everything is back
// because the rate of the last call says so, or a very large number.
func (s *State) inUse(t moment, l *Limit) (used, whole int64) {
	if s.More == l.shared || s.More == nil || s.More.rate.is(l) {
		return unrefilled(s.Used, t.place-s.At, l.Refill), math.MaxInt64
	}
	of := s.More.rate
	if whole = s.At + ceilDiv(s.Used, of.Refill) - t.place; whole <= 0 {
		return 0, math.MaxInt64
	}
	return unrefilled(rescale(s.Used, of.Permit, l.Permit), t.place-s.At, l.Refill), whole
}

// is reports whether the rate is that of a limit of the same window.
func (r *Rate) is(l *Limit) bool { return r.Permit == l.Permit && r.Refill == l.Refill }

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
	used, whole := s.inUse(t, l)
	return l.left(used), l.refilledAfter(used+(cost-l.Max)*l.Permit, whole, t)
}

func (*tokenBucket) resetAfter(s *State, t moment, l *Limit) int64 {
	used, whole := s.inUse(t, l)
	return l.refilledAfter(used, whole, t)
}

func (*tokenBucket) charge(s *State, t moment, l *Limit, cost int64, _ string) effect {
	used, _ := s.inUse(t, l)
	if used == 0 || s.Charged+cost > maxUnits {
		s.renew(t.now)
	}
	s.At, s.Used, s.Charged = t.place, used+cost*l.Permit, s.Charged+cost
	if s.More != l.shared { // not writing an unchanged pointer saves work for the garbage collector
		s.More = l.shared
	}
	return effect{resetAfter: l.refilledAfter(s.Used, math.MaxInt64, t), position: s.Charged}
}

// renew restarts the positions. Charges made before can no longer be given back.
func (s *State) renew(now int64) { s.Charged, s.Born = now%firstPositions, now }

// refilledAfter returns how long it takes until a number of units have come back, or everything after a
// number of ticks.
func (l *Limit) refilledAfter(units, whole int64, t moment) int64 {
	if units <= 0 {
		return 0
	}
	return (t.place+min(whole, ceilDiv(units, l.Refill)))*l.Tick - t.now
}

func (b *tokenBucket) reserve(l *Limit, s *State, now, cost, patience int64) (v Verdict, lives int64) {
	t := moment{now, b.place(now, l)}
	if s.At > t.place {
		s = l.anchored(s, t, cost > 0)
	}
	used, whole := s.inUse(t, l)
	v = Verdict{At: now, Remaining: max(0, l.left(used)), ResetAfter: l.refilledAfter(used, whole, t)}
	if cost == 0 {
		return v, 0
	}
	v.Wait = l.refilledAfter(used+(1-l.Max)*l.Permit, math.MaxInt64, t)
	v.RetryAfter = max(0, v.Wait-patience, l.refilledAfter(used+cost*l.Permit-l.bound(math.MaxInt64), math.MaxInt64, t))
	if v.RetryAfter > 0 && whole < math.MaxInt64 { // the rate of the last call says when everything is back
		back := (t.place+whole)*l.Tick - t.now
		v.RetryAfter, v.Wait = min(v.RetryAfter, back), min(v.Wait, back)
	}
	if v.RetryAfter == 0 {
		lives = v.charge(b.charge(s, t, l, cost, ""), cost)
		v.Remaining = max(0, l.left(s.Used))
	}
	return v, lives
}

// giveBack is the change of token_bucket.lua in Go.
func (b *tokenBucket) giveBack(s *State, now int64, c *Charge) (lost int64) {
	if s.More == nil {
		return 0
	}
	l, r := c.Limit, s.More.rate
	at, born := b.place(now, l), s.Born
	if s.At > at {
		born = min(born, at*l.Tick)
	}
	used, behind := unrefilled(s.Used, max(0, at-s.At), r.Refill), s.Charged-c.Position
	if used == 0 || c.At < born || behind < 0 {
		return 0
	}
	asked, full := saturated(c.Cost, r.Permit), saturated(l.Max, r.Permit)
	back := max(0, min(asked, used-saturated(behind, r.Permit)))
	most := min(asked, used, full-saturated(max(0, at-b.place(c.At, l)), r.Refill))
	charged := s.Charged
	if used > full && !c.InDebt {
		if behind > 0 || !c.Whole {
			return ceilDiv(back, r.Permit)
		}
		charged -= c.Cost
	}
	if back > 0 {
		s.At, s.Used, s.Charged, s.Born = at, used-back, charged, born
	}
	return max(0, most-back) / r.Permit
}

// left returns how many whole permits are left.
func (l *Limit) left(used int64) int64 { return floorDiv(l.Max*l.Permit-used, l.Permit) }

func (*tokenBucket) lasting(l *Limit, v *Verdict, cost int64) lasting {
	answer, before := l.steadyUntil(v, cost)
	if before > 0 {
		answer = max(0, answer-l.ticksFor(before))
	}
	return lasting{answer: answer, permit: l.nextPermit(v), notice: l.ticksFor(l.Max)}
}

// ticksFor returns how long it takes until permits come back, in whole ticks.
func (l *Limit) ticksFor(permits int64) int64 { return ceilDiv(permits*l.Permit, l.Refill) * l.Tick }

// nextPermit subtracts from ResetAfter the time in which the other missing permits come back. The
// number of units that come back in the last tick is not known, so that may be a tick more or less.
func (l *Limit) nextPermit(v *Verdict) int64 {
	if l.Max > maxUnits/ticks(l.Window, l.Tick) {
		return 0
	}
	others := l.Max - 1 - v.Remaining
	switch {
	case v.ResetAfter == 0:
		return l.refilledAfter(l.Permit, math.MaxInt64, moment{v.At, ticks(v.At, l.Tick)})
	case v.Remaining > 0:
		return max(0, v.ResetAfter-l.ticksFor(others))
	default: // everything may come back earlier at the rate of the call before
		return max(0, v.ResetAfter-others*l.Permit/l.Refill*l.Tick)
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

// args are the units of a permit and those that come back per tick, the tick, and the units of a full bucket.
func (*tokenBucket) args(l *Limit, permits, _ int64) [4]int64 {
	return [4]int64{l.Permit, l.Refill, l.Tick, l.bound(permits)}
}

func (*tokenBucket) readState(l *Limit, text string, f *Found) error {
	if len(text) != 39 {
		return errReply
	}
	charged := f.permits()
	f.rate = Rate{Permit: littleEndian(text[14:20]), Refill: littleEndian(text[20:25])}
	f.more = More{rate: &f.rate}
	if f.rate.Permit == 0 || f.rate.Refill == 0 || charged > 0 && !f.rate.is(l) {
		return errReply
	}
	f.State = State{
		At: littleEndian(text[:7]), Used: littleEndian(text[7:14]) - charged*f.rate.Permit, Charged: littleEndian(text[25:32]) - charged,
		Born: littleEndian(text[32:]), More: &f.more,
	}
	return nil
}
