package memstore

import (
	"context"

	"github.com/accesslimit/accesslimit/core/internal/algorithm"
)

// HasCell says whether any counter is out of its table.
func (s *Store) HasCell() bool {
	for i := range s.cells {
		if s.cells[i].Load() != nil {
			return true
		}
	}
	return false
}

// Heat asks for a counter as one does who had to wait for it, after another who had to, so that it leaves its table.
func (s *Store) Heat(c *algorithm.Counter) algorithm.Verdict {
	var v [1]algorithm.Verdict
	s.Decide(context.Background(), []algorithm.Counter{*c}, true, v[:])
	hash := s.hash(c.Key)
	shard, early := s.shard(hash), s.early()
	s.lock(shard)
	defer shard.mu.Unlock()
	if place := shard.placeOf(c.Key, tag(hash)); place >= 0 && v[0].RetryAfter == 0 {
		shard.waitedFor = place
		s.openCell(shard, &shard.entries[place], c.Limit, hash, s.at(shard, early))
	}
	return v[0]
}
