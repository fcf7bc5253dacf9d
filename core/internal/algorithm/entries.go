package algorithm

import "sort"

// Entry is a call that was admitted, or a holder of a slot.
type Entry struct {
	At       int64  // from when it counts, in microseconds. Of a slot: when it was taken or renewed
	Cost     int64  // permits
	Sum      int64  // the permits of this entry and all earlier ones
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
	if s.More == nil || s.More.log == nil {
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

// lookAt returns how many permits remain, and after how long a cost fits. Entries end in their order, until
// the missing permits are back. If all together free too few, that is after a whole window.
func (s *State) lookAt(now int64, l *Limit, cost int64) (remaining, retryAfter int64) {
	live := s.liveAt(now, l.Window)
	var used, before int64
	if len(live) > 0 {
		before = live[0].Sum - live[0].Cost
		used = live[len(live)-1].Sum - before
	}
	if missing := used + cost - l.Max; missing > 0 {
		retryAfter = l.Window
		if at := sort.Search(len(live), func(i int) bool { return live[i].Sum-before >= missing }); at < len(live) {
			retryAfter = live[at].At + l.Window - now
		}
	}
	return l.Max - used, retryAfter
}

// found sets the state to at most two entries that give the same answers as the log or the slots in Redis.
// newest is when the newest permit was charged. freeing is when the permit was charged whose end brings the
// last of the missing ones back; 0: there is none. shift is by how much the log's clock is ahead.
func (f *Found) found(used, newest, freeing, missing, shift int64) *Entry {
	f.State = State{}
	if used == 0 {
		return &f.entries[1]
	}
	entries := f.entries[1:]
	f.entries[1] = Entry{At: newest, Cost: used, Sum: used}
	if freeing > 0 {
		entries = f.entries[:]
		f.entries[0] = Entry{At: freeing, Cost: missing, Sum: missing}
		f.entries[1].Cost -= missing
	}
	f.log = entryLog{entries, shift}
	f.more = More{log: &f.log}
	f.State = State{At: newest - shift, More: &f.more}
	return &f.entries[1]
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
