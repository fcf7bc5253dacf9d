package algorithm

import "cmp"

type fixedWindow struct{ defaults }

func (*fixedWindow) properties() Properties {
	return Properties{
		Name: "FixedWindow", Text: "fixed", File: "fixed_window", Tag: "fw1", MaxPermits: MaxPermits, Debts: true, Remembers: true,
		Merges: true,
	}
}

func (*fixedWindow) limit(t *Terms) (Limit, error) { return inWindows(FixedWindow, t) }

func (*fixedWindow) place(now int64, _ *Limit) int64 { return now }

// anchor restarts the window and keeps its use.
func (*fixedWindow) anchor(s *State, t moment, _ *Limit) { s.At = t.place }

// current returns the start of the window that contains now, and how many permits are used in it.
// An unused window starts now.
func (s *State) current(now, window int64) (start, used int64) {
	if s.Used == 0 || now-s.At >= window {
		return now, 0
	}
	return s.At, s.Used
}

func (*fixedWindow) look(s *State, t moment, l *Limit, cost int64) (remaining, retryAfter int64) {
	start, used := s.current(t.now, l.Window)
	if used+cost > l.Max {
		retryAfter = start + l.Window - t.now
	}
	return l.Max - used, retryAfter
}

func (*fixedWindow) resetAfter(s *State, t moment, l *Limit) int64 {
	start, used := s.current(t.now, l.Window)
	if used == 0 {
		return 0
	}
	return start + l.Window - t.now
}

func (*fixedWindow) charge(s *State, t moment, l *Limit, cost int64, _ string) effect {
	s.At, s.Used = s.current(t.now, l.Window)
	s.Used += cost
	return effect{resetAfter: s.At + l.Window - t.now, position: s.At}
}

// giveBack recognizes the window of the charge by its start.
func (*fixedWindow) giveBack(s *State, now int64, c *Charge) (lost int64) {
	switch {
	case s.At == c.Position:
		s.Used = max(0, s.Used-c.Cost)
	case s.At <= c.At && now-s.At < c.Limit.Window:
		return min(c.Cost, s.Used)
	}
	return 0
}

// lasting: everything comes back at the end of the window. An unused one begins with the next call.
func (*fixedWindow) lasting(l *Limit, v *Verdict, cost int64) lasting {
	answer, _ := l.steadyUntil(v, cost)
	return lasting{answer, min(l.Window/subWindows, v.ResetAfter), cmp.Or(v.ResetAfter, l.Window), v.ResetAfter}
}

// leasedTogether reports whether two charges were made in one window.
func (*fixedWindow) leasedTogether(_ *Limit, a, b *Verdict) bool { return a.Position == b.Position }

func (*fixedWindow) word(l *Limit, s *State, now int64) (w Word, value int64, ok bool) {
	ends := s.At + l.Window
	return Word{kind: l.Kind, full: l.Max, from: now, until: ends, reset: ends, first: s.At}, s.Used, true
}

func (*fixedWindow) back(w *Word, value, _ int64, s *State) (freshAt int64) {
	s.Used = value
	return w.reset
}

func (*fixedWindow) readState(_ *Limit, text string, f *Found) error {
	if len(text) != 13 {
		return errReply
	}
	f.State = State{At: littleEndian(text[:7]), Used: littleEndian(text[7:]) - f.permits()}
	return nil
}
