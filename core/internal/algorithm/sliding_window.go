package algorithm

import "encoding/binary"

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
	s.At = place
	if s.More != nil {
		s.More.Own, *s.More.Older = s.Used, older{}
	}
}

// older is the permits of the 32 sub-windows before the one charged last, each in five bytes at its number modulo 32: less than
// half of what a slice of integers takes, and never made anew.
type older [subWindows][5]byte

func (o *older) permits(n int64) int64 {
	b := &o[n&(subWindows-1)]
	return int64(binary.LittleEndian.Uint32(b[:4])) | int64(b[4])<<32
}

func (o *older) set(n, permits int64) {
	b := &o[n&(subWindows-1)]
	binary.LittleEndian.PutUint32(b[:4], uint32(permits))
	b[4] = byte(permits >> 32)
}

// latest is what sub-window At holds. A state without More never left the first.
func (s *State) latest() int64 {
	if s.More == nil {
		return s.Used
	}
	return s.More.Own
}

// live is what of the state still counts in a sub-window, which is At or later.
func (s *State) live(index int64) (used int64) {
	if s.At < index-subWindows {
		return 0
	}
	used = s.Used
	if s.More != nil {
		for n := s.At - subWindows; n < index-subWindows; n++ {
			used -= s.More.Older.permits(n)
		}
	}
	return used
}

func (slidingWindow) look(s *State, t moment, l *Limit, cost int64) (remaining, retryAfter int64) {
	used := s.live(t.place)
	if missing := used + cost - l.Max; missing > 0 {
		retryAfter = freeAfter(s.freeing(missing, t.place), t.now, l.Window)
	}
	return l.Max - used, retryAfter
}

func (slidingWindow) resetAfter(s *State, t moment, l *Limit) int64 {
	if s.live(t.place) == 0 {
		return 0
	}
	return freeAfter(s.newest(), t.now, l.Window)
}

// newest is the last sub-window that holds anything.
func (s *State) newest() int64 {
	n := s.At
	if s.latest() == 0 && s.More != nil {
		for n--; n > s.At-subWindows && s.More.Older.permits(n) == 0; n-- {
		}
	}
	return n
}

// freeing is the sub-window with which the last of the missing permits comes back; what nothing frees is as if used now.
func (s *State) freeing(missing, index int64) int64 {
	if s.More != nil {
		for n := index - subWindows; n < s.At; n++ {
			if missing -= s.More.Older.permits(n); missing <= 0 {
				return n
			}
		}
	}
	if missing <= s.latest() && s.At >= index-subWindows {
		return s.At
	}
	return index
}

func (slidingWindow) charge(s *State, t moment, l *Limit, cost int64, _ string) (resetAfter, position int64) {
	if t.place != s.At {
		s.turn(t.place)
	}
	s.Used += cost
	if s.More != nil {
		s.More.Own += cost
	}
	return freeAfter(s.At, t.now, l.Window), 0
}

// turn moves the state on to a later sub-window and drops what no longer counts there.
func (s *State) turn(index int64) {
	used := s.live(index)
	if used > 0 && s.More == nil {
		s.More = &More{Own: s.Used, Older: new(older)}
	}
	if s.More != nil {
		s.More.turn(s.At, index)
	}
	s.At, s.Used = index, used
}

func (m *More) turn(at, index int64) {
	if at < index-subWindows {
		m.Own, *m.Older = 0, older{}
		return
	}
	for n := at - subWindows; n < index-subWindows; n++ {
		m.Older.set(n, 0)
	}
	m.Older.set(at, m.Own)
	m.Own = 0
}

func (slidingWindow) giveBack(s *State, _ int64, c *Charge) {
	index := subWindow(c.At, c.Limit.Window)
	switch {
	case index == s.At:
		back := min(c.Cost, s.latest())
		s.Used -= back
		if s.More != nil {
			s.More.Own -= back
		}
	case index < s.At && index >= s.At-subWindows && s.More != nil:
		permits := s.More.Older.permits(index)
		back := min(c.Cost, permits)
		s.Used -= back
		s.More.Older.set(index, permits-back)
	}
}
