package algorithm

import "slices"

type concurrency struct{}

func (concurrency) tag() string { return "cc1" }

func (concurrency) place(now int64, _ *Limit) int64 { return now }

// anchor keeps the slots that were held when one was taken or renewed last, all of them as renewed now.
func (concurrency) anchor(s *State, place int64, l *Limit) { slidingLog{}.anchor(s, place, l) }

func (concurrency) look(s *State, now int64, l *Limit, cost int64) Verdict {
	held := s.Entries[s.firstLive(now, l.Window):]
	v := Verdict{Remaining: l.Max - int64(len(held))}
	if len(held) > 0 {
		v.ResetAfter = held[len(held)-1].At + l.Window - now
	}
	missing := int64(len(held)) + cost - l.Max
	if missing > 0 && missing <= int64(len(held)) {
		return v.missing(missing, held[missing-1].At+l.Window-now)
	}
	return v.missing(missing, l.Window)
}

func (concurrency) charge(s *State, now int64, l *Limit, _ int64, holder string) int64 {
	s.Entries = s.Entries[s.firstLive(now, l.Window):]
	s.release(holder) // a holder has one slot, however often it takes it
	s.Entries = append(s.Entries, Entry{At: now, Cost: 1, Mark: holder})
	s.At = now
	return l.Window
}

func (concurrency) giveBack(s *State, _ int64, c *Charge) {
	s.release(c.Mark)
	s.toNewest()
}

func (s *State) release(holder string) {
	s.Entries = slices.DeleteFunc(s.Entries, func(e Entry) bool { return e.Mark == holder })
}

// Renew keeps a slot for another window. A slot that was lost meanwhile (its holder was cut off, or the store forgot) is taken
// again, even over the limit: its call is in flight, and others are to know.
func (l *Limit) Renew(s *State, now int64, holder string) {
	engines[Concurrency].charge(l.anchored(s, now, true), now, l, 1, holder)
}
