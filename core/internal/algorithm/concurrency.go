package algorithm

import "slices"

type concurrency struct{ defaults }

func (*concurrency) properties() Properties {
	return Properties{
		Name: "Concurrency", Text: "at once", File: "concurrency", Tag: "cc1", MaxPermits: MaxEntries, MinWindow: 1_000_000, Slots: true,
	}
}

func (*concurrency) limit(t *Terms) (Limit, error) { return inWindows(Concurrency, t) }

func (*concurrency) share(l *Limit, part float64) (*Limit, error) { return shareMax(l, part) }

func (*concurrency) args(l *Limit, holder string, _ int64) [4]any {
	return [4]any{l.boxed[0], l.boxed[1], holder, l.boxed[3]}
}

func (*concurrency) place(now int64, _ *Limit) int64 { return now }

// anchor keeps the slots that were held when a slot was last taken or renewed. All of them count as
// renewed now.
func (*concurrency) anchor(s *State, t moment, l *Limit) {
	held := s.liveAt(s.At, l.Window)
	for i := range held {
		held[i].At = t.place
	}
	s.keep(held)
	s.At = t.place
}

func (*concurrency) look(s *State, t moment, l *Limit, cost int64) (remaining, retryAfter int64) {
	held := s.liveAt(t.now, l.Window)
	missing := int64(len(held)) + cost - l.Max
	return l.Max - int64(len(held)), waitFor(missing, held, int(missing)-1, t.now, l.Window)
}

func (*concurrency) resetAfter(s *State, t moment, l *Limit) int64 {
	return s.entriesLast(t.now, l.Window)
}

func (*concurrency) charge(s *State, t moment, l *Limit, _ int64, holder string) effect {
	// A holder has one slot, however often it takes it.
	held := released(s.liveAt(t.now, l.Window), holder)
	s.keep(append(held, Entry{At: t.now, Cost: 1, Mark: holder}))
	s.At = t.now
	return effect{resetAfter: l.Window}
}

func (*concurrency) giveBack(s *State, _ int64, c *Charge) (lost int64) {
	s.keep(released(s.entries(), c.Mark))
	s.toNewest()
	return 0
}

func (*concurrency) empty(s *State) bool { return len(s.entries()) == 0 }

// released returns the entries of all other holders.
func released(entries []Entry, holder string) []Entry {
	return slices.DeleteFunc(entries, func(e Entry) bool { return e.Mark == holder })
}

func (c *concurrency) renew(l *Limit, s *State, now int64, holder string) {
	if s.At > now {
		l.anchored(s, moment{now, now}, true)
	}
	c.charge(s, moment{now, now}, l, 1, holder)
}
