package algorithm

import (
	"errors"
	"math"
)

// The bounds within which both stores calculate exactly, in doubles on one side and int64 on the
// other.
const (
	// MaxPermits is the largest Max or Burst: 10^12, so that a sub-window's count fits in five
	// bytes.
	MaxPermits = 1_000_000_000_000
	// MaxEntries is the largest Max of an algorithm that keeps an entry for each call.
	MaxEntries = 10_000
	// MaxWindow is the longest window, in microseconds: 366 days.
	MaxWindow = 366 * 24 * 3600 * 1_000_000
)

// The errors of default methods, for operations that an algorithm does not have.
var (
	errNotReserved = errors.New("this algorithm takes no reservations")
	errNoLimit     = errors.New("this algorithm makes no limits")
)

// Terms are what a limit is made of.
type Terms struct {
	Max      int64
	Window   int64     // microseconds
	Calendar *Calendar // in place of a window; nil: none
	Burst    int64     // of an algorithm that has one
}

// Limit is a limit in the integers that both stores calculate with. Make one with [Make].
type Limit struct {
	Kind   Kind
	Max    int64 // permits in a window, or in a full bucket
	Window int64 // microseconds; 0 for the days and months of a zone

	Rate               // TokenBucket
	shared   *More     // TokenBucket: shared by the states of its counters
	calendar *Calendar // CalendarWindow: the days or months of a zone; nil: windows since the epoch

	unit int64 // what the step of a bucket counts in place of permits: units of one; otherwise 1
	// The arguments of scripts are boxed once, because boxing them in every call would allocate.
	tag  any // the algorithm's tag
	span any // Span
	step any // the argument of the step for one call of cost 1; nil if it depends on the time
}

// Make makes a limit. The terms must be within the bounds that the algorithm's properties give. The
// error says that the limit cannot be counted exactly.
func Make(kind Kind, t Terms) (Limit, error) { return registry[kind].limit(&t) }

// Most returns the largest cost that the limit ever lets through or, if reserve is true, lets a
// caller reserve.
func (l *Limit) Most(reserve bool) int64 {
	if reserve {
		return l.Reserved
	}
	return l.Max
}

// Windowed makes a limit of an algorithm that needs no more than Max and Window, in microseconds.
func Windowed(kind Kind, maxPermits, window int64) Limit {
	return must(Make(kind, Terms{Max: maxPermits, Window: window}))
}

// Any returns a limit that lets every call pass.
func Any() Limit { return Windowed(FixedWindow, MaxPermits, MaxWindow) }

// Probing returns a limit that nobody reaches, whose counters last a second. It is for calls that
// only test whether a store charges.
func Probing() Limit { return Windowed(FixedWindow, MaxPermits, 1_000_000) }

// InCalendar makes a limit of maxPermits in each day or month of a calendar.
func InCalendar(maxPermits int64, calendar *Calendar) Limit {
	return must(Make(CalendarWindow, Terms{Max: maxPermits, Calendar: calendar}))
}

// Bucketed makes the limit of a bucket that holds burst permits. In each window, rate of them come
// back.
func Bucketed(rate, window, burst int64) (Limit, error) {
	return Make(TokenBucket, Terms{Max: rate, Window: window, Burst: burst})
}

func must(l Limit, err error) Limit {
	if err != nil {
		panic(err)
	}
	return l
}

// newLimit completes a limit.
func newLimit(l Limit) Limit {
	l.unit = max(1, l.Permit)
	l.tag, l.span = l.Kind.Tag(), string(l.appendSpan(nil))
	if !l.Dated() {
		l.step = l.stepArg(1, 1, l.Max, 0, 0, "")
	}
	return l
}

// inWindows makes a limit that needs no more than Max and Window.
func inWindows(kind Kind, t *Terms) (Limit, error) {
	return newLimit(Limit{Kind: kind, Max: t.Max, Window: t.Window}), nil
}

// Share returns a limit that is a fraction of this one: it has that fraction of Max, and of a
// bucket's rate, rounded up, and the same window. The error says that the share cannot be counted
// exactly, or that the algorithm cannot be divided.
func (l *Limit) Share(part float64) (*Limit, error) { return registry[l.Kind].share(l, part) }

// share is that of a limit that has no rate.
func (defaults) share(l *Limit, part float64) (*Limit, error) {
	shared, err := Make(l.Kind, Terms{Max: ceilPart(l.Max, part), Window: l.Window, Calendar: l.calendar})
	return &shared, err
}

// Reaches returns the smallest use of a limit that reaches a fraction of it.
func (l *Limit) Reaches(fraction float64) int64 { return ceilPart(l.Max, fraction) }

// ceilPart returns a fraction of n, rounded up. It ignores floating-point errors: a tenth of 30 is
// 3.
func ceilPart(n int64, part float64) int64 {
	exact := float64(n) * part
	if whole := math.Round(exact); math.Abs(exact-whole) < 1e-9*whole {
		exact = whole
	}
	return max(1, int64(math.Ceil(exact)))
}

// Properties returns what is always true of the limit's algorithm.
func (l *Limit) Properties() *Properties { return &registry[l.Kind].Properties }

// Calendar returns the days or months of the limit, or nil.
func (l *Limit) Calendar() *Calendar { return l.calendar }

// Dated reports whether the arguments of scripts depend on the day or month of the call.
func (l *Limit) Dated() bool { return l.calendar != nil }

// Equal reports whether the stores calculate with the same numbers for both limits.
func (l *Limit) Equal(other *Limit) bool {
	return l == other || l.Kind == other.Kind && l.Max == other.Max && l.Window == other.Window &&
		l.Rate == other.Rate && l.calendar.equal(other.calendar)
}
