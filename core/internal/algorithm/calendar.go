package algorithm

import (
	"sync/atomic"
	"time"
)

// Calendar is the days or the months of a time zone, including daylight saving: a day begins with
// its first instant, whatever the clock shows then.
type Calendar struct {
	Name  string // as in keys
	zone  *time.Location
	month bool
	last  atomic.Pointer[span] // the span returned last; the next call nearly always needs the same one
}

// span is a day or month and the one after it. Redis does not know time zones, so a script receives
// both and picks one by its own clock.
type span struct {
	start, middle, end int64 // microseconds since the epoch
}

// NewCalendar makes the calendar of a zone, in days or in months.
func NewCalendar(name string, zone *time.Location, month bool) *Calendar {
	return &Calendar{Name: name, zone: zone, month: month}
}

// Zone returns the name of the zone, and whether the calendar is of months.
func (c *Calendar) Zone() (name string, months bool) { return c.zone.String(), c.month }

// equal reports whether both calendars are the same, or both nil.
func (c *Calendar) equal(other *Calendar) bool {
	return c == other || c != nil && other != nil && c.Name == other.Name
}

// around returns the span that contains a moment, in microseconds since the epoch.
func (c *Calendar) around(at int64) *span {
	if s := c.last.Load(); s != nil && s.start <= at && at < s.middle {
		return s
	}
	year, month, day := time.UnixMicro(at).In(c.zone).Date()
	n := 0
	// after returns when the next day or month begins. It skips a day that the zone skipped.
	after := func(begun int64) (begins int64) {
		for begins = begun; begins <= begun; {
			n++
			begins = c.begin(year, month, day, n)
		}
		return begins
	}
	s := &span{start: c.begin(year, month, day, 0)}
	s.middle = after(s.start)
	for at >= s.middle { // the clocks were set back to a date that was already over
		s.start, s.middle = s.middle, after(s.middle)
	}
	s.end = after(s.middle)
	c.last.Store(s)
	return s
}

// begin returns the first instant of the nth day or month after the one of a date. Usually that is
// midnight. If the clocks are set forward at midnight, there is no midnight, and if they are set
// back across it, there are two. So begin returns the first instant that shows this date or a later
// one.
func (c *Calendar) begin(year int, month time.Month, day, n int) int64 {
	if c.month {
		month, day = month+time.Month(n), 1
	} else {
		day += n
	}
	midnight := time.Date(year, month, day, 0, 0, 0, 0, time.UTC)
	t := midnight.Add(-48 * time.Hour).In(c.zone) // no zone is that far from UTC
	for {
		_, offset := t.Zone()
		_, changes := t.ZoneBounds()
		begins := midnight.Add(-time.Duration(offset) * time.Second)
		// For the last day of a leap year, ZoneBounds can return an end that is before the
		// beginning (Go 1.26). In that case, the zone does not change on that day.
		if begins.Before(changes) || !changes.After(t) {
			return max(begins.UnixMicro(), t.UnixMicro())
		}
		t = changes
	}
}
