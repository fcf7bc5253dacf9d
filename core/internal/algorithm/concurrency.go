package algorithm

import "slices"

type concurrency struct{ defaults }

func (*concurrency) properties() Properties {
	return Properties{
		Name: "Concurrency", Text: "at once", File: "concurrency", Tag: "cc1", MaxPermits: MaxEntries, MinWindow: 1_000_000,
	}
}

func (*concurrency) limit(t *Terms) (Limit, error) { return inWindows(Concurrency, t) }

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
	return s.lookAt(t.now, l, cost)
}

func (*concurrency) resetAfter(s *State, t moment, l *Limit) int64 {
	return s.entriesLast(t.now, l.Window)
}

func (*concurrency) charge(s *State, t moment, l *Limit, _ int64, holder string) effect {
	// A holder has one slot, however often it takes it.
	held := released(s.liveAt(t.now, l.Window), holder)
	s.keep(summed(append(held, Entry{At: t.now, Cost: 1, Mark: holder})))
	s.At = t.now
	return effect{resetAfter: l.Window}
}

func (*concurrency) giveBack(s *State, _ int64, c *Charge) (lost int64) {
	s.keep(summed(released(s.entries(), c.Mark)))
	s.toNewest()
	return 0
}

// released returns the entries of all other holders.
func released(entries []Entry, holder string) []Entry {
	return slices.DeleteFunc(entries, func(e Entry) bool { return e.Mark == holder })
}

// summed sets the sums of entries.
func summed(entries []Entry) []Entry {
	sum := int64(0)
	for i := range entries {
		sum += entries[i].Cost
		entries[i].Sum = sum
	}
	return entries
}

func (c *concurrency) renew(l *Limit, s *State, now int64, holder string) {
	if s.At > now {
		l.anchored(s, moment{now, now}, true)
	}
	c.charge(s, moment{now, now}, l, 1, holder)
}

// readState reads what the script found before it charged.
func (*concurrency) readState(l *Limit, text string, f *Found) error {
	if len(text) != 3*7 {
		return errReply
	}
	held, newest, freeing := littleEndian(text[:7]), littleEndian(text[7:14]), littleEndian(text[14:])
	if freeing > newest || newest > f.now {
		return errReply
	}
	f.found(held, newest, freeing, held+f.unit-l.Max, 0)
	return nil
}
