package algorithm

import "slices"

type concurrency struct{}

func (concurrency) tag() string { return "cc1" }

func (concurrency) place(now int64, _ *Limit) int64 { return now }

// anchor keeps the slots that were held when one was taken or renewed last, all of them as renewed now.
func (concurrency) anchor(s *State, place int64, l *Limit) { slidingLog{}.anchor(s, place, l) }

func (concurrency) look(s *State, t moment, l *Limit, cost int64) (remaining, retryAfter int64) {
	held := s.liveAt(t.now, l.Window)
	missing := int64(len(held)) + cost - l.Max
	return l.Max - int64(len(held)), waitFor(missing, held, int(missing)-1, t.now, l.Window)
}

func (concurrency) resetAfter(s *State, t moment, l *Limit) int64 {
	return slidingLog{}.resetAfter(s, t, l)
}

func (concurrency) charge(s *State, t moment, l *Limit, _ int64, holder string) (resetAfter, position int64) {
	held := released(s.liveAt(t.now, l.Window), holder) // a holder has one slot, however often it takes it
	s.keep(append(held, Entry{At: t.now, Cost: 1, Mark: holder}))
	s.At = t.now
	return l.Window, 0
}

func (concurrency) giveBack(s *State, _ int64, c *Charge) {
	s.keep(released(s.entries(), c.Mark))
	s.toNewest()
}

// released are the entries without those of a holder.
func released(entries []Entry, holder string) []Entry {
	return slices.DeleteFunc(entries, func(e Entry) bool { return e.Mark == holder })
}

// Renew keeps a slot for another window. A slot that was lost meanwhile (its holder was cut off, or the store forgot) is taken
// again, even over the limit: its call is in flight, and others are to know.
func (l *Limit) Renew(s *State, now int64, holder string) {
	if s.At > now {
		l.anchored(s, now, true)
	}
	concurrency{}.charge(s, moment{now, now}, l, 1, holder)
}
