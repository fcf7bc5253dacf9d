package algorithm

import (
	"slices"
	"sort"
)

type slidingLog struct{ defaults }

func (*slidingLog) properties() Properties {
	return Properties{
		Name: "SlidingLog", Text: "log", File: "sliding_log", Tag: "sl2", MaxPermits: MaxEntries, Exact: true, Notes: true, Remembers: true,
	}
}

func (*slidingLog) limit(t *Terms) (Limit, error) { return inWindows(SlidingLog, t) }

func (*slidingLog) share(l *Limit, part float64) (*Limit, error) { return shareMax(l, part) }

func (*slidingLog) args(l *Limit, note string, _ int64) [4]any {
	return [4]any{l.boxed[0], l.boxed[1], note, l.boxed[3]}
}

func (*slidingLog) place(now int64, _ *Limit) int64 { return now }

func (*slidingLog) anchor(s *State, t moment, l *Limit) { s.anchorEntries(t.place, l.Window) }

// anchorEntries keeps the entries that counted when the newest one was made, and moves them all to
// the time place.
func (s *State) anchorEntries(place, window int64) {
	entries := s.liveAt(s.At, window)
	for i := range entries {
		entries[i].At = place
	}
	s.keep(entries)
	s.At = place
}

// entries returns all entries, oldest first.
func (s *State) entries() []Entry {
	if s.More == nil {
		return nil
	}
	return s.More.log.entries
}

// keep replaces the entries.
func (s *State) keep(entries []Entry) {
	switch {
	case s.More != nil:
		s.More.log.entries = entries
	case len(entries) > 0:
		s.More = &More{log: &entryLog{entries}}
	}
}

// liveAt returns the entries that still count. Each entry counts for a whole window.
func (s *State) liveAt(now, window int64) []Entry {
	entries := s.entries()
	return entries[sort.Search(len(entries), func(i int) bool { return entries[i].At > now-window }):]
}

func (*slidingLog) look(s *State, t moment, l *Limit, cost int64) (remaining, retryAfter int64) {
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

// waitFor returns how long it takes until the missing permits are back. That is when the entry at
// freeing ends, or after a whole window if all entries together free too few.
func waitFor(missing int64, live []Entry, freeing int, now, window int64) int64 {
	switch {
	case missing <= 0:
		return 0
	case freeing < len(live):
		return live[freeing].At + window - now
	}
	return window
}

func (*slidingLog) resetAfter(s *State, t moment, l *Limit) int64 {
	return s.entriesLast(t.now, l.Window)
}

// entriesLast returns how long it takes until no entry counts.
func (s *State) entriesLast(now, window int64) int64 {
	live := s.liveAt(now, window)
	if len(live) == 0 {
		return 0
	}
	return live[len(live)-1].At + window - now
}

func (*slidingLog) charge(s *State, t moment, l *Limit, cost int64, note string) effect {
	live, sum, position := s.liveAt(t.now, l.Window), cost, t.now+cost
	if len(live) > 0 {
		newest := &live[len(live)-1]
		sum, position = newest.Sum+cost, newest.Position+cost
	}
	s.keep(append(live, Entry{At: t.now, Admitted: t.now, Cost: cost, Sum: sum, Position: position, Mark: note}))
	s.At = t.now
	return effect{resetAfter: l.Window, position: position}
}

// giveBack removes the permits from the entry with the charge's position and time, as far as it
// still holds them. Adding up 10,000 later entries again takes 10 µs.
func (*slidingLog) giveBack(s *State, now int64, c *Charge) (lost int64) {
	entries := s.entries()
	i := sort.Search(len(entries), func(i int) bool { return entries[i].Position >= c.Position })
	if i == len(entries) || entries[i].Position != c.Position || entries[i].Admitted != c.At || entries[i].At <= max(s.At, now)-c.Limit.Window {
		return 0
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
	return 0
}

func (*slidingLog) empty(s *State) bool { return len(s.entries()) == 0 }

// toNewest sets the state's At to the At of its newest entry, after an entry was removed.
func (s *State) toNewest() {
	s.At = 0
	if entries := s.entries(); len(entries) > 0 {
		s.At = entries[len(entries)-1].At
	}
}

// steady returns how long it takes until a permit comes back, if that alone ends the answer.
func (*slidingLog) steady(l *Limit, v *Verdict, cost int64) int64 {
	if ends, before := l.steadyUntil(v, cost); before <= 0 {
		return ends
	}
	return 0
}

// nextPermit returns 0 if other calls used permits too, because the verdict does not say when the
// first of them comes back.
func (*slidingLog) nextPermit(l *Limit, v *Verdict) int64 {
	switch {
	case v.ResetAfter == 0:
		return l.Window
	case l.onlyUse(v):
		return v.ResetAfter
	default:
		return 0
	}
}

func (*slidingLog) records(l *Limit, s *State, now int64) []Record {
	live := s.liveAt(max(s.At, now), l.Window)
	records := make([]Record, len(live))
	for i, e := range live {
		records[len(live)-1-i] = Record{At: min(e.At, now), Cost: e.Cost, Note: e.Mark}
	}
	return records
}
