package memstore

import (
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
func (s *Store) Heat(c *algorithm.Counter) algorithm.Verdict { return s.heatAt(c, s.arrival()) }

// heatAt is Heat with a time that was read before.
func (s *Store) heatAt(c *algorithm.Counter, arrived int64) (v algorithm.Verdict) {
	if s.decideOne(c, true, arrived, &v); v.RetryAfter == 0 {
		s.openAt(c, arrived)
	}
	return v
}

// openAt opens a cell for a counter that was charged just now.
func (s *Store) openAt(c *algorithm.Counter, arrived int64) {
	hash := s.hash(c.Key)
	shard := s.shard(hash)
	s.lock(shard)
	defer shard.mu.Unlock()
	if index := shard.indexOf(c.Key, tag(hash)); index >= 0 {
		shard.waitedFor = index
		s.openCell(shard, &shard.entries[index], c, hash, s.timeIn(shard, arrived))
	}
}
