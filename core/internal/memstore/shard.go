package memstore

import (
	"sync"

	"github.com/accesslimit/accesslimit/core/internal/algorithm"
)

// sweptAtOnce is how many entries at most a sweep looks at while it keeps a shard locked.
const sweptAtOnce = 64

// shard is one part of the store. It fills two cache lines, so that two shards share none.
type shard struct {
	mu     sync.Mutex
	newest int64 // the latest time, awake, that was used under the lock
	table
	hand    int              // where the search for an entry to evict goes on
	evicted uint64           // how many keys lost their place while they counted
	blank   *algorithm.State // that of a key without an entry, during a call; made once, it is no allocation
	open    *cell            // nil while every counter is in the table
	// waitedFor is the place of the entry for which somebody who had to wait for the lock last charged.
	waitedFor int
	_         [16]byte
}

// look is the entry of a key, now asked for, and its state; or nil, and the state that a counter begins with.
func (s *shard) look(key []byte, hash uint16) (*entry, *algorithm.State) {
	e := s.find(key, hash)
	if e == nil {
		*s.blank = algorithm.State{}
		return nil, s.blank
	}
	e.ask()
	return e, &e.state
}

// replace gives a new key the place of an entry that can go. The new entry is the last that the hand comes to.
func (s *shard) replace(place int, key string, hash uint16, now int64) *entry {
	if s.entries[place].freshAt() > now {
		s.evicted++
	}
	s.free(s.slotOf(place, s.tagOf(place)))
	s.insert(written(place, hash))
	s.hand = place + 1
	e := &s.entries[place]
	*e = entry{key: key}
	return e
}

// victim returns the first entry, from the hand on, that is as good as fresh or that nobody asked for since the hand last
// passed. It returns -1 if all entries are the call's own. There must be an entry.
func (s *shard) victim(now int64, own ownKeys) (place int) {
	for range 2 * len(s.entries) { // the second round finds none that was asked for
		if s.hand >= len(s.entries) {
			s.hand = 0
		}
		e := &s.entries[s.hand]
		if (!e.asked() || e.freshAt() <= now) && (own == nil || !own(e.key)) {
			return s.hand
		}
		e.forgetAsked()
		s.hand++
	}
	return -1
}

// dropFresh looks at the last few of the entries before a place and removes those as good as fresh. It returns the place before
// which to go on, and how many it removed. What removing moves to a place not seen yet is seen again, and nothing is left out.
func (s *shard) dropFresh(before int, now int64) (next, dropped int) {
	before = min(before, len(s.entries))
	next = max(0, before-sweptAtOnce)
	for place := before - 1; place >= next; place-- {
		if s.entries[place].freshAt() <= now {
			s.remove(place)
			dropped++
		}
	}
	return next, dropped
}
