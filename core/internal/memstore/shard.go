package memstore

import (
	"sync"
	"unsafe"

	"github.com/accesslimit/accesslimit/core/internal/algorithm"
)

// sweptAtOnce is how many entries a sweep looks at, at most, while it keeps a shard locked.
const sweptAtOnce = 64

// cacheLine is the size of a processor's cache line.
const cacheLine = 64

// shard is one part of the store. It fills whole cache lines (two if a word has 64 bits), so that
// two shards never share one.
type shard struct {
	shardFields
	_ [cacheLine - unsafe.Sizeof(shardFields{})%cacheLine]byte
}

type shardFields struct {
	mu     sync.Mutex
	newest int64 // the latest instant.awake that was used under the lock
	ahead  int64 // by how many microseconds the wall clock was ahead of that
	table
	clockHand int              // where the search for an entry to evict continues
	evicted   uint64           // how many keys were evicted while they still counted
	blank     *algorithm.State // the state of a key without an entry during a call; made once to save an allocation
	open      *cell            // nil while every counter is in the table
	// waitedFor is the index of the entry that was charged by the last call that had to wait for
	// the lock.
	waitedFor int
}

// lookUp returns the entry of a key, marks it as referenced, and returns its state. If there is
// none, it returns nil and the state of an unused counter.
func (s *shard) lookUp(key []byte, hash uint16) (*entry, *algorithm.State) {
	e := s.find(key, hash)
	if e == nil {
		*s.blank = algorithm.State{}
		return nil, s.blank
	}
	e.setCalled()
	return e, &e.state
}

// setBack keeps for longer the entries whose windows end at a time of the wall clock, because that was set
// back: until the end of the window, so for at most a whole one. It need not do so for those that counted
// from a later time than it is now: a call counts their use as made now.
func (s *shard) setBack(ahead int64) {
	for i := range s.entries {
		e := &s.entries[i]
		if longest := algorithm.LongestByWall(e.tail.end); longest > 0 && e.state.At <= s.newest+ahead {
			e.freshAt = max(e.freshAt, min(e.freshAt+s.ahead-ahead, s.newest+longest))
		}
	}
}

// dropFresh looks at the last few entries before an index, and removes those that equal fresh ones.
// It returns the index before which to continue, and how many it removed. Removing an entry moves
// another one to its index, so an entry may be looked at twice, but none is missed.
func (s *shard) dropFresh(before int, now int64) (next, dropped int) {
	before = min(before, len(s.entries))
	next = max(0, before-sweptAtOnce)
	for index := before - 1; index >= next; index-- {
		if s.entries[index].freshAt <= now {
			s.remove(index)
			dropped++
		}
	}
	return next, dropped
}
