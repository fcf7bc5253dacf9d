package algorithm

type fixedWindow struct{}

func (fixedWindow) tag() string { return "fw1" }

func (fixedWindow) place(now int64, _ *Limit) int64 { return now }

// anchor starts the window over with what was used.
func (fixedWindow) anchor(s *State, place int64, _ *Limit) { s.At = place }

// current is the window that now lies in: when it started, and what is used of it. An unused one starts now.
func (s *State) current(now, window int64) (start, used int64) {
	if s.Used == 0 || now-s.At >= window {
		return now, 0
	}
	return s.At, s.Used
}

func (fixedWindow) look(s *State, t moment, l *Limit, cost int64) (remaining, retryAfter int64) {
	start, used := s.current(t.now, l.Window)
	if used+cost > l.Max {
		retryAfter = start + l.Window - t.now
	}
	return l.Max - used, retryAfter
}

func (fixedWindow) resetAfter(s *State, t moment, l *Limit) int64 {
	start, used := s.current(t.now, l.Window)
	if used == 0 {
		return 0
	}
	return start + l.Window - t.now
}

func (fixedWindow) charge(s *State, t moment, l *Limit, cost int64, _ string) (resetAfter, position int64) {
	s.At, s.Used = s.current(t.now, l.Window)
	s.Used += cost
	return s.At + l.Window - t.now, 0
}

func (fixedWindow) giveBack(s *State, _ int64, c *Charge) {
	if s.At <= c.At && c.At-s.At < c.Limit.Window {
		s.Used = max(0, s.Used-c.Cost)
	}
}
