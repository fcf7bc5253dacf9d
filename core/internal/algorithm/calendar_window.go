package algorithm

import (
	"strconv"
	"strings"
)

type calendarWindow struct{ defaults }

func (*calendarWindow) properties() Properties {
	return Properties{
		Name: "CalendarWindow", Text: "aligned", File: "calendar_window", Tag: "cw2", MaxPermits: MaxPermits, Calendar: true, Debts: true,
		Remembers: true, Merges: true,
	}
}

func (*calendarWindow) limit(t *Terms) (Limit, error) {
	if t.Calendar == nil {
		return inWindows(CalendarWindow, t)
	}
	return newLimit(Limit{Kind: CalendarWindow, Max: t.Max, calendar: t.Calendar}), nil
}

// args returns the bounds of the current day or month and of the next one, because Redis does not
// know time zones.
func (*calendarWindow) args(l *Limit, permits, at int64) [4]int64 {
	if l.calendar == nil {
		return [4]int64{permits, l.Window}
	}
	days := l.calendar.around(at)
	return [4]int64{permits, days.start, days.middle, days.end}
}

// place returns the start of the window that contains now.
func (*calendarWindow) place(now int64, l *Limit) int64 {
	if l.calendar != nil {
		return l.calendar.around(now).start
	}
	return now - now%l.Window
}

// endOf returns the end of the window that contains now and began at the time began.
func (l *Limit) endOf(began, now int64) int64 {
	if l.calendar != nil {
		return l.calendar.around(now).middle
	}
	return began + l.Window
}

// anchor counts everything that was used as used in the current window.
func (*calendarWindow) anchor(s *State, t moment, _ *Limit) { s.At, s.Born = t.place, s.rebirth(t.now) }

// rebirth returns the birth of a window that is moved back. No charge so far has that birth or was
// made before it.
func (s *State) rebirth(now int64) int64 { return min(now, s.Born-1) }

func (*calendarWindow) look(s *State, t moment, l *Limit, cost int64) (remaining, retryAfter int64) {
	remaining = l.Max
	if s.At == t.place {
		remaining -= s.Used
	}
	if cost > remaining {
		retryAfter = l.endOf(t.place, t.now) - t.now
	}
	return remaining, retryAfter
}

func (*calendarWindow) resetAfter(s *State, t moment, l *Limit) int64 {
	if s.At != t.place || s.Used == 0 {
		return 0
	}
	return l.endOf(t.place, t.now) - t.now
}

func (*calendarWindow) charge(s *State, t moment, l *Limit, cost int64, _ string) effect {
	if s.At != t.place || s.Used == 0 {
		s.At, s.Used, s.Born = t.place, 0, t.now
	}
	s.Used += cost
	return effect{resetAfter: l.endOf(t.place, t.now) - t.now, position: s.Born}
}

// lasting: everything comes back at the end of the window.
func (c *calendarWindow) lasting(l *Limit, v *Verdict, cost int64) lasting {
	answer, _ := l.steadyUntil(v, cost)
	permit := v.ResetAfter
	if permit == 0 {
		permit = l.endOf(c.place(v.At, l), v.At) - v.At
	}
	return lasting{answer: answer, permit: permit, notice: v.ResetAfter}
}

func (*calendarWindow) giveBack(s *State, now int64, c *Charge) (lost int64) {
	switch {
	case s.At > c.At: // of an earlier window
	case s.Born == c.Position:
		s.Used = max(0, s.Used-c.Cost)
	case s.Born <= c.At && now < c.Limit.endOf(s.At, s.At):
		return min(c.Cost, s.Used)
	}
	return 0
}

func (*calendarWindow) word(l *Limit, s *State, now int64) (w Word, value int64, ok bool) {
	ends := l.endOf(s.At, now)
	return Word{kind: l.Kind, full: l.Max, from: now, until: ends, reset: ends, first: s.Born}, s.Used, true
}

func (*calendarWindow) back(w *Word, value, _ int64, s *State) (freshAt int64) {
	s.Used = value
	return w.reset
}

func (*calendarWindow) readState(_ *Limit, text string, f *Found) error {
	if len(text) != 20 {
		return errReply
	}
	f.State = State{At: littleEndian(text[:7]), Used: littleEndian(text[7:13]) - f.permits(), Born: littleEndian(text[13:])}
	return nil
}

// LongestByWall returns how long a window lasts at most, in microseconds, if the key's counter is one
// whose windows end at a time of the wall clock; otherwise 0. It reads the end of the key: see
// [Limit.Span]. Days and months have a margin for the changes of clocks.
func LongestByWall(key string) (longest int64) {
	const day = 24 * 3600 * 1_000_000
	end := strings.LastIndexByte(key, ':')
	if end < 0 || !strings.HasSuffix(key[:end], ":"+CalendarWindow.Tag()) {
		return 0
	}
	switch window := key[end+1:]; {
	case strings.HasPrefix(window, "d"):
		return 2 * day
	case strings.HasPrefix(window, "m"):
		return 32 * day
	default:
		longest, _ = strconv.ParseInt(window, 10, 64)
		return longest
	}
}
