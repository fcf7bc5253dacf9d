package algorithm

// ban is kept for a subject beside its counters: who is refused in several windows one after the other is refused altogether
// for a while.
type ban struct{}

func (ban) tag() string { return "bn1" }

func (ban) place(now int64, _ *Limit) int64 { return now }

// anchor moves the ban back with the clock, so that it lasts as long as it was to.
func (ban) anchor(s *State, place int64, _ *Limit) {
	s.Used -= s.At - place
	s.own().Until -= s.At - place
	s.At = place
}

func (ban) look(s *State, t moment, _ *Limit, _ int64) (remaining, retryAfter int64) {
	return 0, max(0, s.Used-t.now)
}

func (ban) resetAfter(s *State, t moment, _ *Limit) int64 {
	if s.More == nil {
		return 0
	}
	return max(0, s.More.Until-t.now)
}

func (ban) charge(s *State, _ moment, _ *Limit, _ int64, _ string) (resetAfter, position int64) {
	return 0, 0
}

func (ban) giveBack(*State, int64, *Charge) {}

// Strike notes a refusal, once for each window, and bans who has had enough of them. It returns when the state is to be
// forgotten, and whether anything was noted.
func (l *Limit) Strike(s *State, now int64) (resetAfter int64, noted bool) {
	if s.At > now {
		l.anchored(s, now, true)
	}
	more := s.own()
	if more.Until <= now {
		*more = More{}
		*s = State{More: more}
	}
	bans, strikes := more.Own>>16, more.Own&0xffff
	this, last := now/l.Window, s.At/l.Window
	switch {
	case strikes > 0 && last == this:
		return 0, false
	case strikes > 0 && last == this-1:
		strikes++
	default:
		strikes = 1
	}
	if strikes >= l.after {
		span := min(l.span, l.longest)
		for range min(bans, 40) {
			span = min(2*span, l.longest)
		}
		s.Used, bans, strikes = now+span, min(bans+1, 255), 0
	}
	s.At, more.Own, more.Until = now, bans<<16|strikes, max(more.Until, max(s.Used, now)+l.longest)
	return more.Until - now, true
}

// Impose bans by hand: for so long from now, or as long as the ban in force lasts. Earlier bans stay remembered for as long as
// they were to be; strikes in a row begin anew. It reports whether the ban lasts longer than before.
func (s *State) Impose(now, span int64) (resetAfter int64, changed bool) {
	if s.At > now {
		ban{}.anchor(s, now, nil)
	}
	more := s.own()
	if more.Until <= now {
		more.Own = 0
	}
	changed = now+span > s.Used
	s.At, s.Used = now, max(s.Used, now+span)
	more.Own, more.Until = more.Own&^0xffff, max(more.Until, s.Used)
	return more.Until - now, changed
}
