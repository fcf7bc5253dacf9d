package core

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/accesslimit/accesslimit/core/internal/algorithm"
	"github.com/accesslimit/accesslimit/core/internal/terms"
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
	return Limit{Max: n, Calendar: Calendar{terms.Days, zone}}.normal()
}

// PerCalendarMonth returns a limit of n in each calendar month of a zone.
func PerCalendarMonth(n int, zone string) Limit {
	return Limit{Max: n, Calendar: Calendar{terms.Months, zone}}.normal()
}

// InFlight returns a limit of n calls at once, by [Concurrency]. The slot of a holder that died is
// free after 30 seconds, or what [Limit.LostAfter] says.
func InFlight(n int) Limit { return Limit{Max: n}.LostAfter(terms.DefaultLostAfter) }

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

// Calendar is the days or the months of a time zone, as spans of a limit. See [PerCalendarDay] and
// [PerCalendarMonth]. The zero value is no calendar. It is a small comparable value.
type Calendar struct {
	unit terms.Unit
	zone string
}

// String returns the span in words: "day of Europe/Berlin".
func (c Calendar) String() string {
	if c == (Calendar{}) {
		return "no calendar"
	}
	if c.zone == "" {
		return c.unit.String() + " of no zone"
	}
	return fmt.Sprintf("%v of %s", c.unit, c.zone)
}

// String returns the limit in its text form, which [ParseLimit] reads: unlimited, or a number in a
// span, such as 100/s, and the words of its [Algorithm]. The span is s, m or h, or a duration as
// time.ParseDuration reads it.
func (l Limit) String() string { return l.normal().terms().String() }

// MarshalText implements encoding.TextMarshaler. It returns what String does.
func (l Limit) MarshalText() ([]byte, error) { return []byte(l.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler. It does what [ParseLimit] does, and leaves l
// unchanged if that returns an error.
func (l *Limit) UnmarshalText(text []byte) error {
	parsed, err := ParseLimit(string(text))
	if err == nil {
		*l = parsed
	}
	return err
}

// ParseLimit reads a limit in the text form that [Limit.String] returns. For every valid limit,
// ParseLimit(l.String()) returns l with its unset fields filled in. The error is a *[RuleError].
func ParseLimit(text string) (Limit, error) {
	parsed, err := terms.Parse(text)
	l := limitOf(parsed)
	switch wrong := l.wrong(); {
	case errors.Is(err, terms.ErrForm):
		return Limit{}, wrongText(text, "limit_form", err.Error())
	case err != nil:
		return Limit{}, wrongText(text, "limit_text", err.Error())
	case wrong != nil && l != Unlimited:
		return Limit{}, wrongText(text, wrong.Code, partNames[wrong.Field]+wrong.Why)
	}
	return l.clone(), nil
}

func wrongText(text, code, why string) *RuleError {
	return &RuleError{Field: "Limit", Code: code, Value: strings.Clone(text), Why: why}
}

// partNames are how an error about a text begins, by the field of the Limit that it is about.
var partNames = map[string]string{"Max": "its number ", "Window": "its span ", "Burst": "its burst "}

// terms returns the fields of the limit.
func (l Limit) terms() terms.Terms {
	return terms.Terms{
		Max: l.Max, Window: l.Window, Unit: l.Calendar.unit, Zone: l.Calendar.zone, Kind: algorithm.Kind(l.Algorithm), Burst: l.Burst,
	}
}

// limitOf returns the limit with these fields.
func limitOf(t terms.Terms) Limit {
	return Limit{Max: t.Max, Window: t.Window, Calendar: Calendar{t.Unit, t.Zone}, Algorithm: Algorithm(t.Kind), Burst: t.Burst}
}

// compile checks the limit and converts it into the integers that the stores calculate with.
func (l Limit) compile() (algorithm.Limit, error) {
	compiled, wrong := l.terms().Compile()
	if wrong != nil {
		return compiled, &RuleError{Field: wrong.Field, Code: wrong.Code, Value: l.field(wrong.Field), Why: wrong.Why}
	}
	return compiled, nil
}

// field returns the value of a field, or the whole limit.
func (l Limit) field(name string) any {
	switch name {
	case "Max":
		return l.Max
	case "Window":
		return l.Window
	case "Calendar":
		return l.Calendar
	case "Algorithm":
		return l.Algorithm
	case "Burst":
		return l.Burst
	default:
		return l
	}
}

// wrong returns why the limit cannot be counted, or nil.
func (l Limit) wrong() *RuleError {
	_, err := l.compile()
	wrong, _ := err.(*RuleError)
	return wrong
}

// normal returns the limit with its unset fields filled in, so that limits that mean the same are
// equal.
func (l Limit) normal() Limit { return limitOf(l.terms().Filled()) }

// clone returns the limit with its own copy of the zone's name, which a framework may have lent for
// one call only.
func (l Limit) clone() Limit { return limitOf(l.terms().Clone()) }

// sharesCounter reports whether two limits of one name share a counter.
func (l Limit) sharesCounter(other Limit) bool { return l.terms().Counter() == other.terms().Counter() }
