package algorithm

import "sort"

// Entry is a call that was admitted, or a holder of a slot.
type Entry struct {
	At       int64  // from when it counts, in microseconds. Of a slot: when it was taken or renewed
	Cost     int64  // permits
	Sum      int64  // SlidingLog: the permits of this entry and all earlier ones
	Position int64  // SlidingLog: see Charge
	Mark     string // see Counter
}

// entryLog holds entries, oldest first.
type entryLog struct {
	entries []Entry
	shift   int64 // SlidingLog: by how much the log's clock is ahead of the other one
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
		s.More = &More{log: &entryLog{entries: entries}}
	}
}

// liveAt returns the entries that still count. Each entry counts for a whole window.
func (s *State) liveAt(now, window int64) []Entry {
	entries := s.entries()
	return entries[sort.Search(len(entries), func(i int) bool { return entries[i].At > now-window }):]
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

// entriesLast returns how long it takes until no entry counts.
func (s *State) entriesLast(now, window int64) int64 {
	live := s.liveAt(now, window)
	if len(live) == 0 {
		return 0
	}
	return live[len(live)-1].At + window - now
}

// toNewest sets the state's At to the At of its newest entry, after an entry was removed.
func (s *State) toNewest() {
	s.At = 0
	if entries := s.entries(); len(entries) > 0 {
		s.At = entries[len(entries)-1].At - s.More.log.shift
	}
}
