package algorithm

type calendarWindow struct{}

func (calendarWindow) tag() string { return "cw1" }

// place is when the window that now lies in begins.
func (calendarWindow) place(now int64, l *Limit) int64 {
	if l.calendar != nil {
		return l.calendar.around(now).start
	}
	return now - now%l.Window
}

// endOf is when the window ends that begins there, and that now lies in.
func (l *Limit) endOf(begin, now int64) int64 {
	if l.calendar != nil {
		return l.calendar.around(now).middle
	}
	return begin + l.Window
}

// anchor counts what was used as used in this window.
func (calendarWindow) anchor(s *State, place int64, _ *Limit) { s.At = place }

func (calendarWindow) look(s *State, t moment, l *Limit, cost int64) (remaining, retryAfter int64) {
	remaining = l.Max
	if s.At == t.place {
		remaining -= s.Used
	}
	if cost > remaining {
		retryAfter = l.endOf(t.place, t.now) - t.now
	}
	return remaining, retryAfter
}

func (calendarWindow) resetAfter(s *State, t moment, l *Limit) int64 {
	if s.At != t.place || s.Used == 0 {
		return 0
	}
	return l.endOf(t.place, t.now) - t.now
}

func (calendarWindow) charge(s *State, t moment, l *Limit, cost int64, _ string) (resetAfter, position int64) {
	if s.At != t.place {
		s.At, s.Used = t.place, 0
	}
	s.Used += cost
	return l.endOf(t.place, t.now) - t.now, 0
}

func (calendarWindow) giveBack(s *State, _ int64, c *Charge) {
	if s.At <= c.At {
		s.Used = max(0, s.Used-c.Cost)
	}
}
