package core

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/accesslimit/accesslimit/core/internal/algorithm"
	"github.com/accesslimit/accesslimit/core/internal/limittext"
)

// Limit is a number of permits in a span. It is a small comparable value. The zero Limit, and one
// with a negative or too large number, is a *[RuleError] where it is used: no Limit admits
// everything or nothing by accident.
type Limit struct {
	// Max is the number of permits in a span: 1 to 10^12; for SlidingLog and Concurrency at most
	// 10,000.
	Max int
	// Window is the span: 1 ms to 366 days, in whole microseconds.
	Window time.Duration
	// Calendar is a span in place of Window: each day or month of a zone.
	Calendar Calendar
	// Algorithm is the way to count: by default SlidingWindow, and CalendarWindow with a Calendar.
	Algorithm Algorithm
	// Burst is the size of a TokenBucket: 1 to 10^12, Max by default. It must be 0 for other
	// algorithms.
	Burst int
}

// Unlimited lets everything pass uncounted. It is for callers whose plan has no limit: in
// [Rule].Plans, from [Rule].LimitFor, or for a [Counter]. A ban of the rule still holds.
var Unlimited = Limit{Max: -1}

// unlimited reports whether l is Unlimited. The first comparison decides it for all others.
func (l Limit) unlimited() bool { return l.Max < 0 && l == Unlimited }

// Per returns a sliding window of any span: at most n in any span, of 1 ms to 366 days.
//
//	core.Per(4, 5*time.Second).Fixed()
func Per(n int, span time.Duration) Limit { return Limit{Max: n, Window: span} }

// PerSecond returns a sliding window of one second: at most n in any second.
func PerSecond(n int) Limit { return Limit{Max: n, Window: time.Second} }

// PerMinute returns a sliding window of one minute.
func PerMinute(n int) Limit { return Limit{Max: n, Window: time.Minute} }

// PerHour returns a sliding window of one hour.
func PerHour(n int) Limit { return Limit{Max: n, Window: time.Hour} }

// PerDay returns a sliding window of 24 hours. For days that begin at midnight, use
// [PerCalendarDay].
func PerDay(n int) Limit { return Limit{Max: n, Window: 24 * time.Hour} }

// PerCalendarDay returns a limit of n in each calendar day of a zone of the IANA database, such as
// "Europe/Berlin" or "UTC". A day is 23 or 25 hours long when daylight saving time begins or ends.
// Redis's clock says which day it is. The rules of the zone are those that this process knows: a
// machine without them needs import _ "time/tzdata".
func PerCalendarDay(n int, zone string) Limit {
	return Limit{Max: n, Calendar: Calendar{limittext.Days, zone}}.normal()
}

// PerCalendarMonth returns a limit of n in each calendar month of a zone.
func PerCalendarMonth(n int, zone string) Limit {
	return Limit{Max: n, Calendar: Calendar{limittext.Months, zone}}.normal()
}

// InFlight returns a limit of n calls at once, by [Concurrency]. The slot of a holder that died is
// free after 30 seconds, or what [Limit.LostAfter] says.
func InFlight(n int) Limit { return Limit{Max: n}.LostAfter(limittext.DefaultLostAfter) }

// Bucket returns the limit counted by a token bucket of burst permits: PerSecond(10).Bucket(20)
// refills ten a second and lets twenty through at once. A burst of 0 is Max.
func (l Limit) Bucket(burst int) Limit {
	l.Algorithm, l.Burst = TokenBucket, burst
	return l
}

// Log returns the limit counted by [SlidingLog].
func (l Limit) Log() Limit { return l.by(SlidingLog) }

// Fixed returns the limit counted by [FixedWindow].
func (l Limit) Fixed() Limit { return l.by(FixedWindow) }

// Aligned returns the limit counted by [CalendarWindow], in windows that begin at multiples of
// Window since the epoch. For days and months of a zone, see [PerCalendarDay] and
// [PerCalendarMonth].
func (l Limit) Aligned() Limit { return l.by(CalendarWindow) }

// LostAfter returns the limit counted by Concurrency, with the time after which the slot of a
// holder that died is free, at least one second: InFlight(3).LostAfter(10*time.Second).
func (l Limit) LostAfter(span time.Duration) Limit {
	l = l.by(Concurrency)
	l.Window = span
	return l
}

func (l Limit) by(algorithm Algorithm) Limit {
	l.Algorithm, l.Burst = algorithm, 0
	return l
}

// atOnce returns how many permits can pass at one moment.
func (l Limit) atOnce() int {
	if l.Burst != 0 && l.Algorithm.properties().Burst {
		return l.Burst
	}
	return l.Max
}

// fullAgainAfter returns the longest time until all permits of a used-up limit are back, not
// counting sub-windows.
func (l Limit) fullAgainAfter() time.Duration {
	if !l.Algorithm.properties().Burst {
		return l.span()
	}
	return time.Duration(float64(l.Window) / float64(l.Max) * float64(l.atOnce()))
}

// span returns the window, or the nominal length of a calendar's days or months.
func (l Limit) span() time.Duration {
	if l.Calendar == (Calendar{}) {
		return l.Window
	}
	return l.Calendar.unit.Nominal()
}

// normal returns the limit with its unset fields filled in, so that limits that mean the same are
// equal.
func (l Limit) normal() Limit {
	if l.Calendar != (Calendar{}) && l.Algorithm == 0 {
		l.Algorithm = Algorithm(limittext.OfCalendars)
	}
	if l.Algorithm.properties().Burst {
		l.Burst = l.atOnce()
	}
	return l
}

// compile checks the limit and converts it into the integers that the engines use.
func (l Limit) compile() (algorithm.Limit, error) {
	if wrong := l.check(); wrong != nil {
		return algorithm.Limit{}, wrong
	}
	l = l.normal()
	terms := algorithm.Terms{Max: int64(l.Max), Window: l.Window.Microseconds(), Burst: int64(l.Burst)}
	if (l.Calendar != Calendar{}) {
		calendar, err := l.Calendar.compile()
		if err != nil {
			return algorithm.Limit{}, &RuleError{Field: "Calendar", Code: "calendar_zone", Value: l.Calendar, Why: err.Error()}
		}
		terms.Calendar = calendar
	}
	compiled, err := algorithm.Make(algorithm.Kind(l.Algorithm), terms)
	switch {
	case err != nil && l.Burst != l.Max && l.Burst != 0:
		return compiled, &RuleError{Field: "Burst", Code: "too_fine", Value: l.Burst, Why: err.Error()}
	case err != nil:
		return compiled, &RuleError{Field: "Max", Code: "too_fine", Value: l.Max, Why: err.Error()}
	}
	return compiled, nil
}

// wrong returns why the limit cannot be counted, or nil.
func (l Limit) wrong() *RuleError {
	_, err := l.compile()
	wrong, _ := err.(*RuleError)
	return wrong
}

// clone returns the limit with its own copy of the zone's name, which a framework may have lent for
// one call only.
func (l Limit) clone() Limit {
	l.Calendar.zone = strings.Clone(l.Calendar.zone)
	return l
}

// check returns what is wrong with the limit, except what only the engines can tell, or nil.
func (l Limit) check() error {
	wrong := func(field, code string, value any, why string) error {
		return &RuleError{Field: field, Code: code, Value: value, Why: why}
	}
	calendar := l.Calendar != Calendar{}
	of := l.Algorithm.properties()
	most, shortest := cmp.Or(of.MaxPermits, algorithm.MaxEntries), time.Duration(of.MinWindow)*time.Microsecond
	switch {
	case l == Unlimited:
		return wrong("Limit", "unlimited", l, "cannot be counted: Unlimited is for Plans, LimitFor and a Counter's own limit")
	case l.Algorithm.known() && most < algorithm.MaxPermits && (l.Max < 1 || int64(l.Max) > most):
		return wrong("Max", "max_entries", l.Max, fmt.Sprintf("must be 1 to 10,000 for %v, which keeps an entry for each call", l.Algorithm))
	case l.Max < 1 || int64(l.Max) > algorithm.MaxPermits:
		return wrong("Max", "max_range", l.Max, "must be 1 to 10^12")
	case !l.Algorithm.known():
		return wrong("Algorithm", "algorithm", l.Algorithm, "is none of this package")
	case calendar && l.Window != 0:
		return wrong("Calendar", "calendar_and_window", l.Calendar, "takes the place of a Window: set one of the two")
	case calendar && l.Algorithm != 0 && !of.Calendar:
		return wrong("Calendar", "calendar_algorithm", l.Calendar, "goes with "+limittext.Kinds(countsCalendars)+" only")
	case !calendar && (l.Window < time.Millisecond || l.Window > algorithm.MaxWindow*time.Microsecond):
		return wrong("Window", "window_range", l.Window, "must be 1 ms to 366 days")
	case l.Window%time.Microsecond != 0:
		return wrong("Window", "window_fraction", l.Window, "must be whole microseconds")
	case l.Window < shortest:
		return wrong("Window", "window_short", l.Window, fmt.Sprintf("must be at least %g s for %v: holders renew their slots every third of it", shortest.Seconds(), l.Algorithm))
	case l.Burst != 0 && !of.Burst:
		return wrong("Burst", "burst_without_bucket", l.Burst, "means something for "+limittext.Kinds(hasBurst)+" only")
	case l.Burst < 0 || int64(l.Burst) > algorithm.MaxPermits:
		return wrong("Burst", "burst_range", l.Burst, "must be 1 to 10^12, or unset")
	}
	return nil
}

func countsCalendars(p *algorithm.Properties) bool { return p.Calendar }

func hasBurst(p *algorithm.Properties) bool { return p.Burst }
