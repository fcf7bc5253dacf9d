package algorithm

import "errors"

// The bounds within which both engines calculate exactly, in doubles on one side and int64 on the other.
const (
	// MaxPermits is the largest Max or Burst: 10^12, so that a sub-window's count fits in five bytes.
	MaxPermits = 1_000_000_000_000
	// MaxWindow is the longest window, in microseconds: 366 days.
	MaxWindow = 366 * 24 * 3600 * 1_000_000
	// maxRefill is the longest time that an empty bucket takes to fill, in microseconds: 71 years.
	maxRefill = 1 << 51
	// debt is by how many times Max a bucket may be overdrawn, for which a limit must leave room.
	debt = 10
	// coarseFrom is the window from which a bucket counts milliseconds, so that its units stay few.
	coarseFrom = 3600 * 1_000_000
)

// ErrTooLarge says that a bucket cannot be counted exactly.
var ErrTooLarge = errors.New("too large to be counted exactly with this window: a smaller Burst, or a rounder MaxCount, can be")

// Windowed is the limit of an algorithm that counts in windows: at most maxPermits in window microseconds.
func Windowed(kind Kind, maxPermits, window int64) Limit {
	l := Limit{Kind: kind, Max: maxPermits, Window: window}
	l.tag, l.args = kind.Tag(), [4]any{maxPermits, window, int64(0), int64(0)}
	return l
}

// Bucketed is the limit of a bucket that holds burst permits, of which rate come back in window microseconds.
func Bucketed(rate, window, burst int64) (Limit, error) {
	tick := int64(1)
	if window >= coarseFrom && window%1000 == 0 {
		tick = 1000
	}
	divisor := gcd(rate, window/tick)
	l := Limit{
		Kind: TokenBucket, Max: burst, Window: window,
		Permit: window / tick / divisor, Refill: rate / divisor, Tick: tick,
	}
	if burst+debt*rate > maxUnits/l.Permit || ceilDiv(burst*l.Permit, l.Refill) > maxRefill/tick {
		return Limit{}, ErrTooLarge
	}
	l.tag, l.args = TokenBucket.Tag(), [4]any{l.Max, l.Permit, l.Refill, l.Tick}
	return l, nil
}

func gcd(a, b int64) int64 {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}
