package memstore

import (
	"context"

	"github.com/accesslimit/accesslimit/core/internal/algorithm"
)

// HasCell reports whether any cell is open.
func (s *Store) HasCell() bool {
	for i := range s.cells {
		if s.cells[i].Load() != nil {
			return true
		}
	}
	return false
}

// Heat charges a counter as a call does that waited for the lock, after another one that did, so
// that a cell opens.
func (s *Store) Heat(c *algorithm.Counter) algorithm.Verdict {
	var v [1]algorithm.Verdict
	s.Decide(context.Background(), []algorithm.Counter{*c}, true, v[:])
	hash := s.hash(c.Key)
	shard, arrived := s.shard(hash), s.arrival()
	s.lock(shard)
	defer shard.mu.Unlock()
	if place := shard.placeOf(c.Key, tag(hash)); place >= 0 && v[0].RetryAfter == 0 {
		shard.waitedFor = place
		s.openCell(shard, &shard.entries[place], c, hash, s.timeIn(shard, arrived))
	}
	return v[0]
}
