package memstore

// ownKeys reports whether a name belongs to the call that is being decided. No key of a call is
// evicted for another key of the same call. Otherwise a call with more counters than the table may
// hold would never find its own. nil stands for a call with one key.
type ownKeys func(n *name) bool

// entry returns the entry of a key, creating it if needed. It is valid while the shard is locked,
// until another entry is created or removed.
func (s *Store) entry(shard *shard, key []byte, hash uint64, t instant, own ownKeys) *entry {
	if e := shard.find(key, tag(hash)); e != nil {
		return e
	}
	return s.create(shard, key, hash, t, own)
}

// create returns an entry for a new key. If the store is full, another entry is evicted for it. If
// all entries of the shard are the call's own, the store then holds one more than it should.
func (s *Store) create(shard *shard, key []byte, hash uint64, t instant, own ownKeys) *entry {
	if !s.hasRoom(shard) {
		if place := shard.victim(t.awake, own); place >= 0 {
			return shard.replace(place, s.tails.name(key), tag(hash), t.awake)
		}
		s.keys.Add(1)
	}
	s.sweeper.start()
	return shard.add(s.tails.name(key), tag(hash))
}

// hasRoom reports whether a new key may be added, and counts it then. A place is kept free for each
// other shard, because an empty shard has no entry to evict.
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

// victim returns the first entry, from the hand on, that equals a fresh one or that nobody asked
// for since the hand last passed it. It returns -1 if all entries are the call's own. The shard
// must not be empty.
func (s *shard) victim(now int64, own ownKeys) (place int) {
	for range 2 * len(s.entries) { // the second round finds none that was asked for
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

// replace evicts the entry at a place for a new key. The hand reaches the new entry last.
func (s *shard) replace(place int, n name, hash uint16, now int64) *entry {
	if s.entries[place].freshAt > now {
		s.evicted++
	}
	s.emptySlot(s.slotAt(place, s.tagOf(place)))
	s.insert(slotValue(place, hash))
	s.clockHand = place + 1
	e := &s.entries[place]
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
