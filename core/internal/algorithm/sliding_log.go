package algorithm

import (
	"slices"
	"sort"
)

type slidingLog struct{}

func (slidingLog) tag() string { return "sl2" }

func (slidingLog) place(now int64, _ *Limit) int64 { return now }

// anchor keeps what counted when the newest entry was made, all of it as made now.
func (slidingLog) anchor(s *State, place int64, l *Limit) {
	entries := s.liveAt(s.At, l.Window)
	for i := range entries {
		entries[i].At = place
	}
	s.keep(entries)
	s.At = place
}

// entries are all that are kept, oldest first.
func (s *State) entries() []Entry {
	if s.More == nil {
		return nil
	}
	return *s.More.Entries
}

// keep keeps these entries from now on.
func (s *State) keep(entries []Entry) {
	switch {
	case s.More != nil:
		*s.More.Entries = entries
	case len(entries) > 0:
		s.More = &More{Entries: &entries}
	}
}

// liveAt are the entries that still count: each does until a whole window later.
func (s *State) liveAt(now, window int64) []Entry {
	entries := s.entries()
	return entries[sort.Search(len(entries), func(i int) bool { return entries[i].At > now-window }):]
}

func (slidingLog) look(s *State, t moment, l *Limit, cost int64) (remaining, retryAfter int64) {
	live := s.liveAt(t.now, l.Window)
	var used, before int64
	if len(live) > 0 {
		before = live[0].Sum - live[0].Cost
		used = live[len(live)-1].Sum - before
	}
	missing := used + cost - l.Max
	freeing := sort.Search(len(live), func(i int) bool { return live[i].Sum-before >= missing })
	return l.Max - used, waitFor(missing, live, freeing, t.now, l.Window)
}

// waitFor is how long until so many missing permits are back: when the entry at freeing goes, or if there is none that frees as
// many, a whole window.
func waitFor(missing int64, live []Entry, freeing int, now, window int64) int64 {
	switch {
	case missing <= 0:
		return 0
	case freeing < len(live):
		return live[freeing].At + window - now
	}
	return window
}

func (slidingLog) resetAfter(s *State, t moment, l *Limit) int64 {
	live := s.liveAt(t.now, l.Window)
	if len(live) == 0 {
		return 0
	}
	return live[len(live)-1].At + l.Window - t.now
}

func (slidingLog) charge(s *State, t moment, l *Limit, cost int64, note string) (resetAfter, position int64) {
	live, sum, position := s.liveAt(t.now, l.Window), cost, t.now+cost
	if len(live) > 0 {
		newest := &live[len(live)-1]
		sum, position = newest.Sum+cost, newest.Position+cost
	}
	s.keep(append(live, Entry{At: t.now, Admitted: t.now, Cost: cost, Sum: sum, Position: position, Mark: note}))
	s.At = t.now
	return l.Window, position
}

// giveBack takes permits from the entry of that position and time, as many as it still has.
func (slidingLog) giveBack(s *State, now int64, c *Charge) {
	entries := s.entries()
	i := sort.Search(len(entries), func(i int) bool { return entries[i].Position >= c.Position })
	if i == len(entries) || entries[i].Position != c.Position || entries[i].Admitted != c.At || entries[i].At <= max(s.At, now)-c.Limit.Window {
		return
	}
	back := min(c.Cost, entries[i].Cost)
	entries[i].Cost -= back
	for later := i; later < len(entries); later++ {
		entries[later].Sum -= back
	}
	if entries[i].Cost == 0 {
		s.keep(slices.Delete(entries, i, i+1))
		s.toNewest()
	}
}

// toNewest places the state by its newest entry, after another was taken from it.
func (s *State) toNewest() {
	s.At = 0
	if entries := s.entries(); len(entries) > 0 {
		s.At = entries[len(entries)-1].At
	}
}

// Records are the calls that count now, newest first. None is told to have come later than now, where the clock stepped back.
func (l *Limit) Records(s *State, now int64) []Record {
	live := s.liveAt(max(s.At, now), l.Window)
	records := make([]Record, len(live))
	for i, e := range live {
		records[len(live)-1-i] = Record{At: min(e.At, now), Cost: e.Cost, Note: e.Mark}
	}
	return records
}
