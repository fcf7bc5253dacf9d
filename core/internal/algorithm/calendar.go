package algorithm

import (
	"sync/atomic"
	"time"
)

// Calendar is the days or the months of a time zone, daylight saving included: a day begins with its first instant, whatever
// the clock shows then.
type Calendar struct {
	Name  string // as it stands in keys
	zone  *time.Location
	month bool
	last  atomic.Pointer[span] // the one asked for last, which is nearly always the one asked for next
}

// span is a day or month, and the one after it. Redis knows no zones, so a script is told both and picks by its own clock.
type span struct {
	start, middle, end int64 // microseconds since the epoch
	args               [3]any
}

// NewCalendar makes the calendar of a zone, of days or of months.
func NewCalendar(name string, zone *time.Location, month bool) *Calendar {
	return &Calendar{Name: name, zone: zone, month: month}
}

// around is the span that a moment lies in, in microseconds since the epoch.
func (c *Calendar) around(at int64) *span {
	if s := c.last.Load(); s != nil && s.start <= at && at < s.middle {
		return s
	}
	year, month, day := time.UnixMicro(at).In(c.zone).Date()
	step := 0
	if c.month {
		day, step = 1, 1
	}
	s := &span{start: c.begin(year, month, day)}
	next := func(n int) int64 {
		if step == 1 {
			return c.begin(year, month+time.Month(n), 1)
		}
		return c.begin(year, month, day+n)
	}
	s.middle, s.end = next(1), next(2)
	s.args = [3]any{s.start, s.middle, s.end}
	c.last.Store(s)
	return s
}

// begin is the first instant of a day: usually midnight, but where the clocks are put forward then, there is none, and where
// they are put back over it, there are two.
func (c *Calendar) begin(year int, month time.Month, day int) int64 {
	date := time.Date(year, month, day, 0, 0, 0, 0, time.UTC)
	t := time.Date(year, month, day, 0, 0, 0, 0, c.zone)
	changed, changes := t.ZoneBounds()
	switch compareDates(t, date) {
	case -1:
		t = changes // Date took the time before the gap
	case 1:
		t = changed // or a day that the zone left out altogether
	default:
		if before := changed.Add(-time.Nanosecond); !changed.IsZero() && compareDates(before, date) == 0 {
			hour, minute, second := before.Clock()
			since := time.Duration(hour)*time.Hour + time.Duration(minute)*time.Minute + time.Duration(second)*time.Second
			t = before.Add(-since).Truncate(time.Second)
		}
	}
	return t.UnixMicro()
}

// compareDates compares the date that a time shows with another's, in UTC.
func compareDates(t, date time.Time) int {
	year, month, day := t.Date()
	return time.Date(year, month, day, 0, 0, 0, 0, time.UTC).Compare(date)
}
