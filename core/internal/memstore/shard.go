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

// shard is one part of the store. It fills whole cache lines, two if a word has 64 bits, so that two
// shards share none.
type shard struct {
	shardFields
	_ [cacheLine - unsafe.Sizeof(shardFields{})%cacheLine]byte
}

type shardFields struct {
	mu     sync.Mutex
	newest int64 // the latest instant.awake that was used under the lock
	table
	clockHand int              // where the search for an entry to evict goes on
	evicted   uint64           // how many keys were evicted while they still counted
	blank     *algorithm.State // for a key without an entry, during a call; made once to save an allocation
	open      *cell            // nil while every counter is in the table
	// waitedFor is the place of the entry that was last charged by a call that had waited for the
	// lock.
	waitedFor int
}

// lookUp returns the entry of a key, which now counts as asked for, and its state. If there is
// none, it returns nil and the state that a counter begins with.
func (s *shard) lookUp(key []byte, hash uint16) (*entry, *algorithm.State) {
	e := s.find(key, hash)
	if e == nil {
		*s.blank = algorithm.State{}
		return nil, s.blank
	}
	e.setCalled()
	return e, &e.state
}

// dropFresh removes entries that equal fresh ones, among the last few before a place. It returns
// the place before which to go on, and how many it removed. Removing an entry moves another into
// its place, which may then be looked at twice, but no entry is left out.
func (s *shard) dropFresh(before int, now int64) (next, dropped int) {
	before = min(before, len(s.entries))
	next = max(0, before-sweptAtOnce)
	for place := before - 1; place >= next; place-- {
		if s.entries[place].freshAt <= now {
			s.remove(place)
			dropped++
		}
	}
	return next, dropped
}
