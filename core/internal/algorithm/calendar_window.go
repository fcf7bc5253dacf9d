package algorithm

type calendarWindow struct{}

func (calendarWindow) tag() string { return "cw1" }

// bounds are the window that now lies in.
func (l *Limit) bounds(now int64) (first, end int64) {
	if l.calendar != nil {
		span := l.calendar.around(now)
		return span.start, span.middle
	}
	first = now - now%l.Window
	return first, first + l.Window
}

func (calendarWindow) place(now int64, l *Limit) int64 {
	first, _ := l.bounds(now)
	return first
}

// anchor counts what was used as used in this window.
func (calendarWindow) anchor(s *State, place int64, _ *Limit) { s.At = place }

func (calendarWindow) look(s *State, now int64, l *Limit, cost int64) Verdict {
	first, end := l.bounds(now)
	v := Verdict{Remaining: l.Max}
	if s.At == first && s.Used > 0 {
		v.Remaining, v.ResetAfter = l.Max-s.Used, end-now
	}
	return v.missing(cost-v.Remaining, end-now)
}

func (calendarWindow) charge(s *State, now int64, l *Limit, cost int64, _ string) int64 {
	first, end := l.bounds(now)
	if s.At != first {
		s.At, s.Used = first, 0
	}
	s.Used += cost
	return end - now
}

func (calendarWindow) giveBack(s *State, _ int64, c *Charge) {
	if s.At <= c.At {
		s.Used = max(0, s.Used-c.Cost)
	}
}
