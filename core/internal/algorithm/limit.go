package algorithm

import (
	"errors"
	"math"
)

// The bounds within which both engines calculate exactly, in doubles on one side and int64 on the other.
const (
	// MaxPermits is the largest Max or Burst: 10^12, so that a sub-window's count fits in five bytes.
	MaxPermits = 1_000_000_000_000
	// MaxEntries is the largest Max of the algorithms that keep an entry for each call, SlidingLog and Concurrency.
	MaxEntries = 10_000
	// MaxWindow is the longest window, in microseconds: 366 days.
	MaxWindow = 366 * 24 * 3600 * 1_000_000
	// maxRefill is the longest time that an empty bucket takes to fill, in microseconds: 71 years.
	maxRefill = 1 << 51
	// debt is by how many times its rate a bucket may be overdrawn, for which a limit must leave room.
	debt = 10
	// coarseFrom is the window from which a bucket counts milliseconds, so that its units stay few.
	coarseFrom = 3600 * 1_000_000
)

// ErrTooLarge says that a bucket cannot be counted exactly.
var ErrTooLarge = errors.New("too large to be counted exactly with this window: a smaller Burst, or a rounder MaxCount, can be")

// Limit is a limit in the integers that both engines calculate with. Make one with [Windowed], [Bucketed], [InCalendar] or
// [Banned].
type Limit struct {
	Kind     Kind
	Max      int64 // permits that fit: of a window, or of the full bucket
	Window   int64 // microseconds; 0 for the days and months of a zone
	Permit   int64 // TokenBucket: units of one permit
	Refill   int64 // TokenBucket: units that come back per tick
	Tick     int64 // TokenBucket: microseconds
	Reserved int64 // TokenBucket: the most permits that one reservation takes

	rate     *More     // TokenBucket: Permit and Refill, as its counters remember them
	calendar *Calendar // CalendarWindow: the days or months that it counts in; nil: each Window since the epoch
	after    int64     // Ban: how many windows one after the other; 0: bans by hand alone
	span     int64     // Ban: how long the first ban lasts, in microseconds
	longest  int64     // Ban: how long any lasts

	tag, dry any    // the algorithm's name, and as it is written for a counter that refuses no call; and
	args     [4]any // its args, as interfaces once and for all: made call by call, each would be an allocation
	fast     any    // FastArg of one call of cost 1
}

// Windowed is the limit of an algorithm that counts in windows: at most maxPermits in window microseconds.
func Windowed(kind Kind, maxPermits, window int64) Limit {
	return Limit{Kind: kind, Max: maxPermits, Window: window}.with(maxPermits, window, 0, 0)
}

// Bucketed is the limit of a bucket that holds burst permits, of which rate come back in window microseconds.
func Bucketed(rate, window, burst int64) (Limit, error) {
	tick := int64(1)
	if window >= coarseFrom && window%1000 == 0 {
		tick = 1000
	}
	divisor := gcd(rate, window/tick)
	l := Limit{
		Kind: TokenBucket, Max: burst, Window: window, Reserved: max(burst, debt*rate),
		Permit: window / tick / divisor, Refill: rate / divisor, Tick: tick,
	}
	l.rate = &More{Own: l.Permit, Until: l.Refill}
	if burst+debt*rate > maxUnits/l.Permit || ceilDiv(burst*l.Permit, l.Refill) > maxRefill/tick {
		return Limit{}, ErrTooLarge
	}
	return l.with(l.Max, l.Permit, l.Refill, l.Tick), nil
}

// InCalendar is a limit of so many permits in each day or month of a calendar.
func InCalendar(maxPermits int64, calendar *Calendar) Limit {
	return Limit{Kind: CalendarWindow, Max: maxPermits, calendar: calendar}.with(maxPermits, 0, 0, 0)
}

// Banned is the ban of who is refused in so many windows one after the other (0: by hand alone): for span, and each time twice as long, up to
// longest. Times are in microseconds.
func Banned(after, span, longest, window int64) Limit {
	return Limit{Kind: Ban, Window: window, after: after, span: span, longest: longest}.with(after, span, longest, window)
}

// Share is a part of the limit: so much of Max, and of a bucket's rate, rounded up, in the same window. The error is that a bucket's part cannot
// be counted exactly.
func (l *Limit) Share(part float64) (Limit, error) {
	switch {
	case l.Kind == Ban:
		return *l, nil
	case l.Kind == TokenBucket:
		rate := l.Window / l.Tick / l.Permit * l.Refill
		return Bucketed(ceilPart(rate, part), l.Window, ceilPart(l.Max, part))
	case l.calendar != nil:
		return InCalendar(ceilPart(l.Max, part), l.calendar), nil
	default:
		return Windowed(l.Kind, ceilPart(l.Max, part), l.Window), nil
	}
}

// ceilPart is a part of n, rounded up but for what floating point adds: a tenth of 30 is 3.
func ceilPart(n int64, part float64) int64 {
	exact := float64(n) * part
	if whole := math.Round(exact); math.Abs(exact-whole) < 1e-9*whole {
		exact = whole
	}
	return max(1, int64(math.Ceil(exact)))
}

// with boxes what the scripts take for the limit.
func (l Limit) with(args ...int64) Limit {
	l.tag, l.dry = l.Kind.Tag(), "~"+l.Kind.Tag()
	for i, arg := range args {
		l.args[i] = arg
	}
	if l.FastScript() != nil {
		l.fast = l.fastArg(1, 1)
	}
	return l
}

// AppendArgs appends what decide.lua takes for a counter: the algorithm, the cost, and the args of the algorithm's Lua
// function, padded to four. at is about now, in microseconds.
func (c *Counter) AppendArgs(args []any, at int64) []any {
	tag := c.Limit.tag
	if c.Dry {
		tag = c.Limit.dry
	}
	cost := c.Cost
	if c.Limit.Kind == Ban {
		cost = int64(len(c.Watched))
	}
	args = append(args, tag, cost)
	return c.Limit.appendArgs(args, c.Mark, at)
}

// AppendWatched appends what decide.lua takes behind the args of all counters: for each ban the places of those that it watches.
func AppendWatched(args []any, counters []Counter) []any {
	for i := range counters {
		for _, at := range counters[i].Watched {
			args = append(args, int64(at+1))
		}
	}
	return args
}

// AppendArgs appends the arguments of a charge for give_back.lua: the algorithm, the cost, when it was
// charged, its position, and the arguments of the algorithm.
func (c *Charge) AppendArgs(args []any) []any {
	args = append(args, c.Limit.tag, c.Cost, c.At, c.place())
	return c.Limit.appendArgs(args, c.Mark, c.At)
}

func (l *Limit) appendArgs(args []any, mark string, at int64) []any {
	switch {
	case l.calendar != nil:
		span := l.calendar.around(at)
		return append(args, l.args[0], span.args[0], span.args[1], span.args[2])
	case l.Kind == SlidingLog || l.Kind == Concurrency:
		return append(args, l.args[0], l.args[1], mark, l.args[3])
	default:
		return append(args, l.args[:]...)
	}
}

// Equal says whether the engines calculate with the same numbers for both limits.
func (l *Limit) Equal(other *Limit) bool {
	return l == other || l.Kind == other.Kind && l.Max == other.Max && l.Window == other.Window && l.Permit == other.Permit &&
		l.Refill == other.Refill && l.Tick == other.Tick && l.calendar.equal(other.calendar) &&
		l.after == other.after && l.span == other.span && l.longest == other.longest
}

// Spell is how keys tell this limit's span from others: its microseconds, or the calendar's name.
func (l *Limit) Spell() (window int64, calendar string) {
	if l.calendar != nil {
		return 0, l.calendar.Name
	}
	return l.Window, ""
}

func gcd(a, b int64) int64 {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}
