package algorithm

// subWindows is into how many parts a sliding window is cut. Of these, 33 count at any time: see sliding_window.lua.
const subWindows = 32

type slidingWindow struct{}

func (slidingWindow) tag() string { return "sw1" }

// subWindow is the number of the sub-window that now lies in, counted from the epoch.
func subWindow(now, window int64) int64 {
	phase := now % window
	return (now-phase)/window*subWindows + phase*subWindows/window
}

// freeAfter is how long until the permits of sub-window n have left every window that ends now or later.
func freeAfter(n, now, window int64) int64 {
	n += subWindows + 1
	part := n % subWindows
	return (n-part)/subWindows*window + (part*window+subWindows-1)/subWindows - now
}

func (slidingWindow) advance(s *State, now int64, l *Limit) {
	index := subWindow(now, l.Window)
	switch {
	case s.At > index: // the clock stepped back: everything used counts as used now
		s.At, s.Own, s.Older = index, s.Used, s.Older[:0]
	case s.At < index:
		s.turn(index)
	}
}

// turn moves the state on to a later sub-window and drops what no longer counts there.
func (s *State) turn(index int64) {
	expired := 0
	for _, older := range s.Older {
		if s.number(older) >= index-subWindows {
			break
		}
		s.Used -= permits(older)
		expired++
	}
	s.Older = append(s.Older[:0], s.Older[expired:]...)
	if s.At < index-subWindows {
		s.Used = 0
	} else if s.Own > 0 {
		s.Older = append(s.Older, uint64(s.At%64)<<40|uint64(s.Own))
	}
	// The numbers of Older are told from At by their distance, so they stay true while no entry is older than 63.
	s.At, s.Own = index, 0
}

// number is the sub-window of an entry of Older, told from its last six bits: it is at most 33 before At.
func (s *State) number(older uint64) int64 {
	return s.At - (s.At-int64(older>>40))&63
}

func permits(older uint64) int64 { return int64(older & (1<<40 - 1)) }

func (slidingWindow) look(s *State, now int64, l *Limit, cost int64) Verdict {
	v := Verdict{Remaining: l.Max - s.Used}
	if s.Own > 0 {
		v.ResetAfter = freeAfter(s.At, now, l.Window)
	} else if n := len(s.Older); n > 0 {
		v.ResetAfter = freeAfter(s.number(s.Older[n-1]), now, l.Window)
	}
	if missing := s.Used + cost - l.Max; missing > 0 {
		v.RetryAfter = s.retryAfter(missing, now, l)
	}
	return v
}

// retryAfter is how long until as many permits as are missing have come back.
func (s *State) retryAfter(missing, now int64, l *Limit) int64 {
	for _, older := range s.Older {
		if missing -= permits(older); missing <= 0 {
			return freeAfter(s.number(older), now, l.Window)
		}
	}
	return freeAfter(subWindow(now, l.Window), now, l.Window)
}

func (slidingWindow) charge(s *State, now int64, l *Limit, cost int64) int64 {
	s.At = subWindow(now, l.Window)
	s.Used += cost
	s.Own += cost
	return freeAfter(s.At, now, l.Window)
}
