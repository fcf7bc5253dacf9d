package core

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// defaultLostAfter is the Window of a limit by Concurrency unless its text names another.
const defaultLostAfter = 30 * time.Second

// String returns the limit in its text form, which [ParseLimit] reads:
//
//	100/s            a sliding window
//	5/15m log        a sliding log
//	1000/24h fixed   a fixed window
//	60/m aligned     windows aligned to the clock
//	10/s burst 20    a token bucket
//	1000/day@UTC     calendar days; also month@ZONE
//	3 at once        concurrency; also 3 at once lost after 10s
//	unlimited
//
// The span is s, m or h, or a duration as time.ParseDuration reads it.
func (l Limit) String() string {
	l = l.normal()
	switch of := l.Algorithm.properties(); {
	case l == Unlimited:
		return "unlimited"
	case of.Slots && l.Window == defaultLostAfter:
		return fmt.Sprintf("%d at once", l.Max)
	case of.Slots:
		return fmt.Sprintf("%d at once lost after %s", l.Max, spanText(l.Window))
	case l.Calendar != Calendar{}:
		return fmt.Sprintf("%d/%v@%s", l.Max, l.Calendar.unit, l.Calendar.zone)
	case of.Burst:
		return fmt.Sprintf("%d/%s burst %d", l.Max, unitText(l.Window), l.Burst)
	case of.Text != "":
		return fmt.Sprintf("%d/%s %s", l.Max, unitText(l.Window), of.Text)
	default:
		return fmt.Sprintf("%d/%s", l.Max, unitText(l.Window))
	}
}

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
	l, why := parseLimit(strings.Fields(text))
	if why == "" && l != Unlimited {
		if wrong := l.wrong(); wrong != nil {
			why = wrong.ofLimit()
		}
	}
	if why != "" {
		return Limit{}, &RuleError{Field: "Limit", Code: "limit_text", Value: strings.Clone(text), Why: why}
	}
	return l.clone(), nil
}

const limitForms = `must be like 100/s, 5/15m log, 10/s burst 20, 1000/day@UTC, 3 at once, or unlimited`

func parseLimit(words []string) (l Limit, why string) {
	switch {
	case len(words) == 0:
		return l, limitForms
	case len(words) == 1 && words[0] == "unlimited":
		return Unlimited, ""
	case len(words) >= 3 && words[1] == "at" && words[2] == "once":
		return parseInFlight(words[0], words[3:])
	}
	count, span, ok := strings.Cut(words[0], "/")
	if !ok {
		return l, limitForms
	}
	if l.Max, why = parseCount(count); why != "" {
		return l, why
	}
	if unit, zone, ok := strings.Cut(span, "@"); ok {
		return l.inCalendar(unit, zone, words[1:])
	}
	if l.Window, why = parseUnit(count, span); why != "" {
		return l, why
	}
	return l.withAlgorithm(words[1:])
}

func parseInFlight(count string, rest []string) (l Limit, why string) {
	limit, why := parseCount(count)
	l = InFlight(limit)
	switch {
	case why != "" || len(rest) == 0:
		return l, why
	case len(rest) != 3 || rest[0] != "lost" || rest[1] != "after":
		return l, limitForms
	}
	l.Window, why = parseSpan(rest[2])
	return l, why
}

func (l Limit) inCalendar(unit, zone string, rest []string) (_ Limit, why string) {
	switch {
	case len(rest) > 0:
		return l, "a calendar day or month has no other algorithm: leave out " + strconv.Quote(rest[0])
	case unit == "day":
		return PerCalendarDay(l.Max, zone), ""
	case unit == "month":
		return PerCalendarMonth(l.Max, zone), ""
	default:
		return l, "only days and months have a zone: day@UTC, month@Europe/Berlin"
	}
}

func (l Limit) withAlgorithm(words []string) (_ Limit, why string) {
	switch {
	case len(words) == 0:
		return l, ""
	case len(words) == 1:
		if algorithm, ok := algorithmOf(words[0]); ok {
			return l.by(algorithm), ""
		}
	case len(words) == 2 && words[0] == "burst":
		burst, why := parseCount(words[1])
		return l.Bucket(burst), why
	}
	return l, fmt.Sprintf("does not say how to count with %q: log, fixed, aligned or burst N", strings.Join(words, " "))
}

// parseCount reads digits only: a sign or an underscore would be written back without.
func parseCount(text string) (n int, why string) {
	wide, err := strconv.ParseInt(text, 10, 64)
	switch n = int(wide); {
	case err != nil || wide < 1 || text[0] == '+':
		return 0, fmt.Sprintf("counts %q, which is not a number from 1 to 10^12", text)
	case int64(n) != wide:
		return 0, fmt.Sprintf("counts %q, but the largest number on 32 bits is %d", text, math.MaxInt)
	}
	return n, ""
}

// parseUnit reads the span of a rate.
func parseUnit(count, span string) (_ time.Duration, why string) {
	switch span {
	case "s":
		return time.Second, ""
	case "m":
		return time.Minute, ""
	case "h":
		return time.Hour, ""
	case "d", "day":
		return 0, fmt.Sprintf("needs a zone, as in %s/day@UTC; for 24 hours from any moment write %s/24h", count, count)
	case "month":
		return 0, fmt.Sprintf("needs a zone, as in %s/month@UTC; for 30 days from any moment write %s/720h", count, count)
	}
	return parseSpan(span)
}

func parseSpan(text string) (_ time.Duration, why string) {
	span, err := time.ParseDuration(text)
	if err != nil {
		return 0, fmt.Sprintf("has the span %q, which is not s, m, h or a duration such as 15m", text)
	}
	return span, ""
}

// unitText returns the span of a rate: s, m or h for one of these.
func unitText(span time.Duration) string {
	switch span {
	case time.Second:
		return "s"
	case time.Minute:
		return "m"
	case time.Hour:
		return "h"
	default:
		return spanText(span)
	}
}

// spanText returns a span without the zeros that time.Duration writes: 1m, not 1m0s.
func spanText(d time.Duration) string {
	text := d.String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}
