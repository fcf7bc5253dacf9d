package terms

import (
	"fmt"
	"strings"
	"time"
)

// letterOf returns the span of a rate, as s, m or h if it is one of these.
func letterOf(span time.Duration) string {
	for _, one := range spans {
		if span == one.is {
			return one.letter
		}
	}
	return Span(span)
}

// Span returns a span without the zeros that time.Duration writes: 1m, not 1m0s.
func Span(d time.Duration) string {
	text := d.String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}

// Phrase returns the limit in the words of a message to callers: "5 per minute", "10 per second, at
// most 20 at once", "3 calls at once".
func (t Terms) Phrase() string {
	of := t.Kind.OfLimit()
	switch {
	case of.Slots && t.Max == 1:
		return "1 call at once"
	case of.Slots:
		return fmt.Sprintf("%d calls at once", t.Max)
	case t.Unit != 0:
		return fmt.Sprintf("%d per calendar %v", t.Max, t.Unit)
	case of.Burst && t.Burst != 0 && t.Burst != t.Max:
		return fmt.Sprintf("%d per %s, at most %d at once", t.Max, spanPhrase(t.Window), t.Burst)
	default:
		return fmt.Sprintf("%d per %s", t.Max, spanPhrase(t.Window))
	}
}

// spanPhrase returns a span in the largest unit of which it is a whole number: "minute", "10
// seconds", "1.5s".
func spanPhrase(span time.Duration) string {
	for _, unit := range []struct {
		is   time.Duration
		name string
	}{{24 * time.Hour, "day"}, {time.Hour, "hour"}, {time.Minute, "minute"}, {time.Second, "second"}} {
		switch {
		case span == unit.is:
			return unit.name
		case span%unit.is == 0:
			return fmt.Sprintf("%d %ss", span/unit.is, unit.name)
		}
	}
	return span.String()
}
