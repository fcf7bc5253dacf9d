package algorithm

type fixedWindow struct{}

func (fixedWindow) tag() string { return "fw1" }

func (fixedWindow) advance(s *State, now int64, l *Limit) {
	switch {
	case s.At > now: // the clock stepped back: the window starts over with what was used
		s.At = now
	case now-s.At >= l.Window:
		s.Used = 0
	}
}

func (fixedWindow) look(s *State, now int64, l *Limit, cost int64) Verdict {
	v := Verdict{Remaining: l.Max - s.Used}
	ends := l.Window
	if s.Used > 0 {
		ends = s.At + l.Window - now
		v.ResetAfter = ends
	}
	if s.Used+cost > l.Max {
		v.RetryAfter = ends
	}
	return v
}

func (fixedWindow) charge(s *State, now int64, l *Limit, cost int64) int64 {
	if s.Used == 0 {
		s.At = now
	}
	s.Used += cost
	return s.At + l.Window - now
}
