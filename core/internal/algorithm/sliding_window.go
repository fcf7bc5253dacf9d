package algorithm

import "encoding/binary"

// subWindows is the number of parts into which a sliding window is cut. Of these, 33 count at any
// time; see sliding_window.lua.
const subWindows = 32

type slidingWindow struct{ defaults }

// subWindowed is what a state holds besides the number of used permits, once more than one
// sub-window was used.
type subWindowed struct {
	latest int64 // permits of sub-window At
	older  older
}

// older holds the permits of the 32 sub-windows before the one that was charged last. The
// sub-window with number n has the five bytes at n modulo 32. That is less than half the size of a
// slice of integers, and is allocated only once.
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

func (*slidingWindow) properties() Properties {
	return Properties{
		Name: "SlidingWindow", File: "sliding_window", Tag: "sw2", MaxPermits: MaxPermits,
		Exact: true, Late: true, Debts: true, Remembers: true, Merges: true,
	}
}

func (*slidingWindow) limit(t *Terms) (Limit, error) { return inWindows(SlidingWindow, t) }

// subWindow returns the number of the sub-window that contains now, counted from the epoch. It
// counts whole windows first, because window/32 may be a fraction, and now*32 may exceed the range
// in which a Lua double is exact.
func subWindow(now, window int64) int64 {
	phase := now % window
	return (now-phase)/window*subWindows + phase*subWindows/window
}

// freeAfter returns how long it takes until the permits of sub-window n no longer count.
func freeAfter(n, now, window int64) int64 {
	n += subWindows + 1
	part := n % subWindows
	return (n-part)/subWindows*window + (part*window+subWindows-1)/subWindows - now
}

// subWindowRest returns how long it takes until the next sub-window begins.
func subWindowRest(now, window int64) int64 {
	return freeAfter(subWindow(now, window)-subWindows, now, window)
}

func (*slidingWindow) place(now int64, l *Limit) int64 { return subWindow(now, l.Window) }

func (*slidingWindow) anchor(s *State, t moment, _ *Limit) {
	s.At, s.Born = t.place, s.rebirth(t.now)
	if s.More != nil {
		*s.More.window = subWindowed{latest: s.Used}
	}
}

// latest returns the permits of sub-window At. A state without More has used no other sub-window.
func (s *State) latest() int64 {
	if s.More == nil {
		return s.Used
	}
	return s.More.window.latest
}

// live returns how many permits still count in a sub-window, which is At or later.
func (s *State) live(index int64) (used int64) {
	if s.At < index-subWindows {
		return 0
	}
	used = s.Used
	if s.More != nil {
		for n := s.At - subWindows; n < index-subWindows; n++ {
			used -= s.More.window.older.permits(n)
		}
	}
	return used
}

func (*slidingWindow) look(s *State, t moment, l *Limit, cost int64) (remaining, retryAfter int64) {
	used := s.live(t.place)
	if missing := used + cost - l.Max; missing > 0 {
		retryAfter = freeAfter(s.freeing(missing, t.place), t.now, l.Window)
	}
	return l.Max - used, retryAfter
}

func (*slidingWindow) resetAfter(s *State, t moment, l *Limit) int64 {
	if s.live(t.place) == 0 {
		return 0
	}
	return freeAfter(s.newest(), t.now, l.Window)
}

// newest returns the last sub-window that holds anything.
func (s *State) newest() int64 {
	n := s.At
	if s.latest() == 0 && s.More != nil {
		for n--; n > s.At-subWindows && s.More.window.older.permits(n) == 0; n-- {
		}
	}
	return n
}

// freeing returns the sub-window whose end brings back the last of the missing permits. If all
// sub-windows together free too few, it returns the current one.
func (s *State) freeing(missing, index int64) int64 {
	if s.More != nil {
		for n := index - subWindows; n < s.At; n++ {
			if missing -= s.More.window.older.permits(n); missing <= 0 {
				return n
			}
		}
	}
	if missing <= s.latest() && s.At >= index-subWindows {
		return s.At
	}
	return index
}

func (*slidingWindow) charge(s *State, t moment, l *Limit, cost int64, _ string) effect {
	if t.place != s.At {
		s.turn(t.place)
	}
	if s.Used == 0 {
		s.Born = t.now
	}
	s.Used += cost
	if s.More != nil {
		s.More.window.latest += cost
	}
	return effect{resetAfter: freeAfter(s.At, t.now, l.Window), position: s.Born}
}

// turn advances the state to a later sub-window and drops what no longer counts then.
func (s *State) turn(index int64) {
	used := s.live(index)
	if used > 0 && s.More == nil {
		s.More = newWindow(s.Used)
	}
	if s.More != nil {
		s.More.window.turn(s.At, index)
	}
	s.At, s.Used = index, used
}

// newWindow returns the data of a state besides the number of used permits, in one allocation. Two
// allocations would cost a call another cache miss.
func newWindow(latest int64) *More {
	w := &struct {
		more   More
		window subWindowed
	}{window: subWindowed{latest: latest}}
	w.more.window = &w.window
	return &w.more
}

func (w *subWindowed) turn(at, index int64) {
	if at < index-subWindows {
		*w = subWindowed{}
		return
	}
	for n := at - subWindows; n < index-subWindows; n++ {
		w.older.set(n, 0)
	}
	w.older.set(at, w.latest)
	w.latest = 0
}

func (*slidingWindow) giveBack(s *State, now int64, c *Charge) (lost int64) {
	index := subWindow(c.At, c.Limit.Window)
	switch {
	case s.Born != c.Position:
		if first := subWindow(now, c.Limit.Window) - subWindows; s.Born <= c.At && s.At >= first && index >= first {
			return min(c.Cost, s.Used)
		}
	case index == s.At:
		back := min(c.Cost, s.latest())
		s.Used -= back
		if s.More != nil {
			s.More.window.latest -= back
		}
	case index < s.At && index >= s.At-subWindows && s.More != nil:
		older := &s.More.window.older
		permits := older.permits(index)
		back := min(c.Cost, permits)
		s.Used -= back
		older.set(index, permits-back)
	}
	return 0
}

// lasting: an answer holds at most for the rest of the sub-window if permits of several ones have to come
// back.
func (*slidingWindow) lasting(l *Limit, v *Verdict, cost int64) (of lasting) {
	rest := subWindowRest(v.At, l.Window)
	of.lease, of.notice = rest, l.Window
	var before int64
	if of.answer, before = l.steadyUntil(v, cost); before > 0 {
		of.answer = min(of.answer, rest)
	}
	switch {
	case v.ResetAfter == 0:
		of.permit = l.Window
	case l.onlyUse(v):
		of.permit = v.ResetAfter
	case v.Remaining > 0: // the verdict does not say in which sub-windows others used permits
		of.permit = rest
	}
	return of
}

// leasedTogether reports whether two charges were made in one sub-window.
func (*slidingWindow) leasedTogether(l *Limit, a, b *Verdict) bool {
	return a.Position == b.Position && subWindow(a.At, l.Window) == subWindow(b.At, l.Window)
}

func (*slidingWindow) word(l *Limit, s *State, now int64) (w Word, value int64, ok bool) {
	return Word{
		kind: l.Kind, full: l.Max, from: now, until: now + subWindowRest(now, l.Window), reset: now + freeAfter(s.At, now, l.Window),
		first: s.Born,
	}, s.Used, true
}

func (*slidingWindow) back(w *Word, value, _ int64, s *State) (freshAt int64) {
	if s.More != nil {
		s.More.window.latest += value - s.Used
	}
	s.Used = value
	return w.reset
}

// readState reads a state. If all that was asked fits, the script replies as if everything had been used in
// the last sub-window, because then it does not matter in which it was.
func (*slidingWindow) readState(_ *Limit, text string, f *Found) error {
	if len(text)%6 != 2 || len(text) < 26 {
		return errReply
	}
	w := &f.window
	*w = subWindowed{latest: littleEndian(text[13:19])}
	f.more = More{window: w}
	f.State = State{At: littleEndian(text[:7]), Used: littleEndian(text[7:13]), Born: littleEndian(text[19:26]), More: &f.more}
	held := w.latest
	for at := 26; at < len(text); at += 6 {
		slot, permits := int64(text[at]), littleEndian(text[at+1:at+6])
		if age := (f.State.At - slot) & 63; age == 0 || age > subWindows {
			return errReply
		}
		w.older.set(slot, permits)
		held += permits
	}
	charged := f.permits()
	if held != f.State.Used || charged > w.latest {
		return errReply
	}
	f.State.Used, w.latest = f.State.Used-charged, w.latest-charged
	return nil
}
