package memstore

import (
	"sync"

	"github.com/accesslimit/accesslimit/core/internal/algorithm"
)

// entry is one counter.
type entry struct {
	key     string
	state   algorithm.State
	freshAt int64 // when the state equals a fresh one, in microseconds since the epoch
	asked   bool  // whether anybody asked for it since it was new, or since the hand last passed
}

// shard is one part of the table. Entries lie side by side; the index says where a key's is.
type shard struct {
	mu      sync.Mutex
	index   map[string]int
	entries []entry
	hand    int // where the search for an entry to evict goes on
}

// look says what a counter answers. A counter that nobody charged yet gets no entry by it.
func (s *shard) look(c *algorithm.Counter, now int64, charge bool) algorithm.Verdict {
	at, known := s.index[string(c.Key)]
	if !known {
		return c.Limit.Look(new(algorithm.State), now, c.Cost, charge)
	}
	e := &s.entries[at]
	e.asked = true
	return c.Limit.Look(&e.state, now, c.Cost, charge)
}

func (s *shard) add(key string) (at int) {
	at = len(s.entries)
	s.entries = append(s.entries, entry{key: key})
	s.index[key] = at
	return at
}

// remove takes an entry out and moves the last one into its place.
func (s *shard) remove(at int) {
	last := len(s.entries) - 1
	delete(s.index, s.entries[at].key)
	if at != last {
		s.entries[at] = s.entries[last]
		s.index[s.entries[at].key] = at
	}
	s.entries[last] = entry{}
	s.entries = s.entries[:last]
}

// replace gives a new key the place of an entry that can go. The new entry is the last that the hand comes to.
func (s *shard) replace(key string, now int64) (at int) {
	at = s.victim(now)
	delete(s.index, s.entries[at].key)
	s.entries[at] = entry{key: key}
	s.index[key] = at
	s.hand = at + 1
	return at
}

// victim is the first entry, from the hand on, that is as good as fresh or that nobody asked for since the hand last passed.
// There must be an entry.
func (s *shard) victim(now int64) (at int) {
	for {
		at = s.hand % len(s.entries)
		s.hand = at
		e := &s.entries[at]
		if !e.asked || e.freshAt <= now {
			return at
		}
		e.asked = false
		s.hand++
	}
}

// dropFresh removes the entries that are as good as fresh and says how many they were.
func (s *shard) dropFresh(now int64) (dropped int) {
	for at := len(s.entries) - 1; at >= 0; at-- {
		if s.entries[at].freshAt <= now {
			s.remove(at)
			dropped++
		}
	}
	if len(s.entries) == 0 && dropped > 0 {
		s.entries, s.index = nil, make(map[string]int) // gives back the memory of a flood that is over
	}
	return dropped
}
