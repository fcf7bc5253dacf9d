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

func (slidingWindow) place(now int64, l *Limit) int64 { return subWindow(now, l.Window) }

func (slidingWindow) anchor(s *State, place int64, _ *Limit) {
	s.At, s.Own, s.Older = place, s.Used, s.Older[:0]
}

// live is what of the state still counts in a sub-window: the permits used, and how many of the older sub-windows are over.
func (s *State) live(index int64) (used int64, over int) {
	used = s.Used
	for over < len(s.Older) && s.number(s.Older[over]) < index-subWindows {
		used -= permits(s.Older[over])
		over++
	}
	if s.At < index-subWindows {
		used = 0
	}
	return used, over
}

// number is the sub-window of an entry of Older, told from its last six bits: it is at most 33 before At.
func (s *State) number(older uint64) int64 {
	return s.At - (s.At-int64(older>>40))&63
}

func permits(older uint64) int64 { return int64(older & (1<<40 - 1)) }

func (slidingWindow) look(s *State, now int64, l *Limit, cost int64) Verdict {
	index := subWindow(now, l.Window)
	used, over := s.live(index)
	v := Verdict{Remaining: l.Max - used}
	if used > 0 {
		v.ResetAfter = freeAfter(s.newest(), now, l.Window)
	}
	if missing := used + cost - l.Max; missing > 0 {
		v.RetryAfter = freeAfter(s.freeing(missing, over, index), now, l.Window)
	}
	return v
}

// newest is the last sub-window that holds anything.
func (s *State) newest() int64 {
	if n := len(s.Older); s.Own == 0 && n > 0 {
		return s.number(s.Older[n-1])
	}
	return s.At
}

// freeing is the sub-window with which the last of the missing permits comes back; what nothing frees is as if used now.
func (s *State) freeing(missing int64, over int, index int64) int64 {
	for _, older := range s.Older[over:] {
		if missing -= permits(older); missing <= 0 {
			return s.number(older)
		}
	}
	if missing <= s.Own && s.At >= index-subWindows {
		return s.At
	}
	return index
}

func (slidingWindow) charge(s *State, now int64, l *Limit, cost int64, _ string) int64 {
	if index := subWindow(now, l.Window); index != s.At {
		s.turn(index)
	}
	s.Used += cost
	s.Own += cost
	return freeAfter(s.At, now, l.Window)
}

// turn moves the state on to a later sub-window and drops what no longer counts there.
func (s *State) turn(index int64) {
	used, over := s.live(index)
	s.Older = append(s.Older[:0], s.Older[over:]...)
	if s.Own > 0 && s.At >= index-subWindows {
		s.Older = append(s.Older, uint64(s.At%64)<<40|uint64(s.Own))
	}
	s.At, s.Used, s.Own = index, used, 0
}

func (slidingWindow) giveBack(s *State, _ int64, c *Charge) {
	index := subWindow(c.At, c.Limit.Window)
	if s.At == index {
		back := min(c.Cost, s.Own)
		s.Used -= back
		s.Own -= back
		return
	}
	for i, older := range s.Older {
		if s.number(older) != index {
			continue
		}
		back := min(c.Cost, permits(older))
		s.Used -= back
		if s.Older[i] -= uint64(back); permits(s.Older[i]) == 0 {
			s.Older = append(s.Older[:i], s.Older[i+1:]...)
		}
		return
	}
}
