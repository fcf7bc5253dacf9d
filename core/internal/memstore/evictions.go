package memstore

// Evictions is how many keys lost their place to new ones while they still counted.
func (s *Store) Evictions() (n uint64) {
	for i := range s.shards {
		shard := &s.shards[i]
		s.lock(shard)
		n += shard.evicted
		shard.mu.Unlock()
	}
	return n
}
