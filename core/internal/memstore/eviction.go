package memstore

import (
	"slices"

	"github.com/accesslimit/accesslimit/core/internal/algorithm"
)

// callKeys reports whether a name belongs to the call that is being decided. No key of a call is
// evicted for another key of the same call; otherwise a call with more counters than the table can
// hold would never find them. nil stands for a call with one key.
type callKeys func(n *name) bool

// isAny reports whether the name is that of one of the counters.
func (n *name) isAny(counters []algorithm.Counter) bool {
	return slices.ContainsFunc(counters, func(c algorithm.Counter) bool { return n.is(c.Key) })
}

// entry returns the entry of a key, creating it if needed. It is valid while the shard is locked,
// until another entry is created or removed.
func (s *Store) entry(shard *shard, key []byte, hash uint64, t instant, own callKeys) *entry {
	if e := shard.find(key, tag(hash)); e != nil {
		return e
	}
	return s.create(shard, key, hash, t, own)
}

// create returns an entry for a new key. If the store is full, it evicts another entry. If all
// entries of the shard belong to the call, the store then holds one entry more than it should.
func (s *Store) create(shard *shard, key []byte, hash uint64, t instant, own callKeys) *entry {
	if !s.hasRoom(shard) {
		if index := shard.victim(t.awake, own); index >= 0 {
			return shard.replace(index, s.tails.name(key), tag(hash), t.awake)
		}
		s.keys.Add(1)
	}
	s.sweeper.start()
	return shard.add(s.tails.name(key), tag(hash))
}

// hasRoom reports whether a new key may be added, and if so, counts it. One entry is kept free for
// each other shard, because an empty shard has no entry to evict.
func (s *Store) hasRoom(shard *shard) bool {
	most := s.maxKeys - int64(len(s.shards)-1)
	switch {
	case len(shard.entries) == 0:
		s.keys.Add(1)
		return true
	case len(shard.entries) == maxEntries || s.keys.Load() >= most:
		return false
	case s.keys.Add(1) > most:
		s.keys.Add(-1)
		return false
	}
	return true
}

// victim returns the index of the CLOCK algorithm's next victim: the first entry, from the clock
// hand on, that equals a fresh one or was not referenced since the hand last passed it. It returns
// -1 if all entries belong to the call. The shard must not be empty.
func (s *shard) victim(now int64, own callKeys) (index int) {
	for range 2 * len(s.entries) { // in the second round, no entry is referenced any more
		if s.clockHand >= len(s.entries) {
			s.clockHand = 0
		}
		e := &s.entries[s.clockHand]
		if (!e.referenced || e.freshAt <= now) && (own == nil || !own(&e.name)) {
			return s.clockHand
		}
		e.referenced = false
		s.clockHand++
	}
	return -1
}

// replace evicts the entry at an index for a new key. The clock hand reaches the new entry last.
func (s *shard) replace(index int, n name, hash uint16, now int64) *entry {
	if s.entries[index].freshAt > now {
		s.evicted++
	}
	s.emptySlot(s.slotAt(index, s.tagOf(index)))
	s.insert(slotValue(index, hash))
	s.clockHand = index + 1
	e := &s.entries[index]
	*e = entry{name: n}
	return e
}

// Evictions returns how many keys were evicted for new ones while they still counted.
func (s *Store) Evictions() (n uint64) {
	for i := range s.shards {
		shard := &s.shards[i]
		s.lock(shard)
		n += shard.evicted
		shard.mu.Unlock()
	}
	return n
}
