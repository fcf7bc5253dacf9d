package promise

import (
	"math"
	"time"

	"github.com/accesslimit/accesslimit/core"
)

// namedLimit is a limit that every promise is tested with.
type namedLimit struct {
	name string
	core.Limit
	// changed are limits that may replace this one. They have the same counter, but another size or
	// rate.
	changed []core.Limit
}

// mostPermits is the largest Max, 10^12, or the largest that an int can hold.
const mostPermits = min(1_000_000_000_000, math.MaxInt-1)

// limits returns the limits that every promise is tested with. A new algorithm needs an entry in
// algorithms, and a few limits here if it does not count in windows.
func limits() []namedLimit {
	all := []namedLimit{
		bucket(core.PerSecond(10).Bucket(20), core.PerSecond(7).Bucket(20), core.PerSecond(10).Bucket(4)),
		// A permit comes back in 1.67 microseconds.
		bucket(core.PerSecond(600_000).Bucket(100), core.PerSecond(400_001).Bucket(30)),
		bucket(core.Limit{Max: 7, Window: 1_000_003 * time.Microsecond, Burst: 5}, core.Limit{Max: 13, Window: 1_000_003 * time.Microsecond, Burst: 9}),
		bucket(core.Limit{Max: 1, Window: time.Millisecond}, core.Limit{Max: 1, Window: time.Millisecond, Burst: 3}),
		// It is refilled once a millisecond.
		bucket(core.PerHour(7).Bucket(3), core.PerHour(500).Bucket(20)),
	}
	for _, f := range algorithms {
		if f.Algorithm != core.TokenBucket {
			all = append(all,
				windowed(f.Algorithm, "a few a second", 7, time.Second, 3, 12),
				windowed(f.Algorithm, "one a millisecond", 1, time.Millisecond, 2, 5), // the shortest window
				windowed(f.Algorithm, "a span that nothing divides", 40, 1_000_003*time.Microsecond, 1, 300),
				windowed(f.Algorithm, "as many as can be", f.largest, time.Minute, f.largest-1, 5))
		}
	}
	return all
}

// windowed returns a limit that counts in windows, and may be changed to the other values of Max.
func windowed(algorithm core.Algorithm, name string, most int, window time.Duration, others ...int) namedLimit {
	limit := core.Limit{Max: most, Window: window, Algorithm: algorithm}
	n := namedLimit{name: algorithm.String() + ", " + name, Limit: limit}
	for _, other := range others {
		limit.Max = other
		n.changed = append(n.changed, limit)
	}
	return n
}

// bucket returns a token bucket that may be changed to the others.
func bucket(limit core.Limit, changed ...core.Limit) namedLimit {
	limit.Algorithm = core.TokenBucket
	for i := range changed {
		changed[i].Algorithm = core.TokenBucket
	}
	return namedLimit{name: "TokenBucket, " + limit.String(), Limit: limit, changed: changed}
}

// facts are the facts about an algorithm that the promises need.
type facts struct {
	core.Algorithm
	// model returns the model of a new counter.
	model func() model
	// largest is the largest n for lasting.
	largest int
	// slack is how much longer a wait may be than with an exact count; 0 if the algorithm is exact.
	slack func(core.Limit) time.Duration
	// most is how many permits may pass in any half-open span of this length.
	most func(limit core.Limit, span time.Duration) int64
	// full is how long it takes at most until a used-up counter equals a fresh one.
	full func(core.Limit) time.Duration
	// lives is how long a key may live after it was written.
	lives func(core.Limit) time.Duration
	// lasting returns a limit of n permits, none of which comes back while a test runs. The limits
	// for different n have the same counter.
	lasting func(n int) core.Limit
	// rounding is how many permits may be missing after refunds, because of the fraction of a
	// permit that a bucket refilled meanwhile.
	rounding int
	// leases reports whether its permits can be leased, and debts whether more can be charged than fit.
	leases, debts bool
}

// algorithms are all algorithms except Concurrency.
var algorithms = []facts{
	{
		Algorithm: core.SlidingWindow,
		debts:     true,
		largest:   mostPermits,
		model:     slidingModel,
		slack:     subWindowLasts,
		most:      func(l core.Limit, span time.Duration) int64 { return int64(l.Max) * windowsIn(l, span) },
		full:      func(l core.Limit) time.Duration { return l.Window + subWindowLasts(l) },
		lives:     func(l core.Limit) time.Duration { return 2 * l.Window },
		lasting:   func(n int) core.Limit { return core.PerDay(n) },
		leases:    true,
	},
	{
		Algorithm: core.SlidingLog,
		largest:   10_000,
		model:     logModel,
		slack:     exact,
		most:      func(l core.Limit, span time.Duration) int64 { return int64(l.Max) * windowsIn(l, span) },
		full:      func(l core.Limit) time.Duration { return l.Window },
		lives:     func(l core.Limit) time.Duration { return 2 * l.Window },
		lasting: func(n int) core.Limit {
			return core.Limit{Max: n, Window: 24 * time.Hour, Algorithm: core.SlidingLog}
		},
	},
	{
		Algorithm: core.CalendarWindow,
		debts:     true,
		largest:   mostPermits,
		model:     func() model { return new(alignedModel) },
		slack:     exact,
		most: func(l core.Limit, span time.Duration) int64 {
			return int64(l.Max) * (windowsIn(l, span-time.Microsecond) + 1)
		},
		full:  func(l core.Limit) time.Duration { return l.Window },
		lives: func(l core.Limit) time.Duration { return 2 * l.Window },
		lasting: func(n int) core.Limit { // its windows end at one midnight in a hundred
			return core.Limit{Max: n, Window: 100 * 24 * time.Hour, Algorithm: core.CalendarWindow}
		},
	},
	{
		Algorithm: core.FixedWindow,
		debts:     true,
		largest:   mostPermits,
		leases:    true,
		model:     func() model { return new(fixedModel) },
		slack:     exact,
		most: func(l core.Limit, span time.Duration) int64 {
			return int64(l.Max) * (windowsIn(l, span-time.Microsecond) + 1)
		},
		full:  func(l core.Limit) time.Duration { return l.Window },
		lives: func(l core.Limit) time.Duration { return 2 * l.Window },
		lasting: func(n int) core.Limit {
			return core.Limit{Max: n, Window: 24 * time.Hour, Algorithm: core.FixedWindow}
		},
	},
	{
		Algorithm: core.TokenBucket,
		debts:     true,
		largest:   20_000, // at one a day, as in lasting
		model:     func() model { return new(bucketModel) },
		slack:     exact,
		most:      func(l core.Limit, span time.Duration) int64 { return int64(atOnce(l)) + refilled(l, span+tick(l)) },
		full:      timeToFill,
		lives:     timeToFill,
		lasting:   func(n int) core.Limit { return core.PerDay(1).Bucket(n) },
		rounding:  1,
	},
}

// Algorithms returns the algorithms that charge permits: all except Concurrency.
func Algorithms() (all []core.Algorithm) {
	for _, f := range algorithms {
		all = append(all, f.Algorithm)
	}
	return all
}

// Lasting returns a limit of n permits for each of these algorithms. No permit comes back while a
// test runs.
func Lasting(n int) (limits []core.Limit) {
	for _, f := range algorithms {
		limits = append(limits, f.lasting(n))
	}
	return limits
}

// limits returns the limits of this algorithm.
func (f facts) limits() (own []namedLimit) {
	for _, l := range limits() {
		if l.Algorithm == f.Algorithm {
			own = append(own, l)
		}
	}
	return own
}

func exact(core.Limit) time.Duration { return 0 }

// subWindowLasts returns the 32nd part of a window, in whole microseconds, like the clock.
func subWindowLasts(l core.Limit) time.Duration {
	return (l.Window/32 + time.Microsecond - 1).Truncate(time.Microsecond)
}

// atOnce returns how many permits a fresh counter lets through at one moment.
func atOnce(l core.Limit) int {
	if l.Burst != 0 {
		return l.Burst
	}
	return l.Max
}

// windowsIn returns how many consecutive windows cover a span.
func windowsIn(l core.Limit, span time.Duration) int64 {
	return int64((span + l.Window - 1) / l.Window)
}

// tick returns the interval at which a bucket is refilled: a microsecond, or a millisecond for
// windows of an hour and more.
func tick(l core.Limit) time.Duration {
	if l.Window >= time.Hour && l.Window%time.Millisecond == 0 {
		return time.Millisecond
	}
	return time.Microsecond
}

// refilled returns how many permits of a bucket come back in a span, a partial one included.
func refilled(l core.Limit, span time.Duration) int64 {
	return int64(float64(span)/float64(l.Window)*float64(l.Max)) + 1
}

// timeToFill returns how long an empty bucket takes to be full, including the tick that has begun.
func timeToFill(l core.Limit) time.Duration {
	return time.Duration(float64(l.Window)/float64(l.Max)*float64(atOnce(l))) + 2*tick(l)
}
