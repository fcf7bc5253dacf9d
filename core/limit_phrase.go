package core

import (
	"fmt"
	"time"
)

// phrase returns the limit in the words of a message to callers: "5 per minute", "10 per second, at
// most 20 at once", "3 calls at once".
func (l Limit) phrase() string {
	switch {
	case l.Algorithm.properties().Slots && l.Max == 1:
		return "1 call at once"
	case l.Algorithm.properties().Slots:
		return fmt.Sprintf("%d calls at once", l.Max)
	case l.Calendar != Calendar{}:
		return fmt.Sprintf("%d per calendar %v", l.Max, l.Calendar.unit)
	case l.atOnce() != l.Max:
		return fmt.Sprintf("%d per %s, at most %d at once", l.Max, spanPhrase(l.Window), l.atOnce())
	default:
		return fmt.Sprintf("%d per %s", l.Max, spanPhrase(l.Window))
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
