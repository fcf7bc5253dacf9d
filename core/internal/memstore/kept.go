package memstore

import (
	"context"

	"github.com/accesslimit/accesslimit/core/internal/algorithm"
)

// Reserve takes a turn at a bucket, if it comes within patience, in microseconds.
func (s *Store) Reserve(_ context.Context, c *algorithm.Counter, patience int64) (v algorithm.Verdict) {
	shard := s.shard(c.Key)
	shard.mu.Lock()
	defer shard.mu.Unlock()
	now := s.now()
	if _, known := shard.index[string(c.Key)]; !known {
		if v := c.Limit.Reserve(new(algorithm.State), now, c.Cost, patience); v.RetryAfter > 0 || c.Cost == 0 {
			return v // neither a refused call makes an entry, nor one that asks for nothing
		}
	}
	e := s.entry(shard, c.Key, now)
	e.asked = true
	v = c.Limit.Reserve(&e.state, now, c.Cost, patience)
	e.freshAt = now + v.ResetAfter
	return v
}

// GiveBack gives charges back, as far as they still count.
func (s *Store) GiveBack(_ context.Context, charges []algorithm.Charge) error {
	for i := range charges {
		s.change(charges[i].Key, func(e *entry, now int64) { charges[i].GiveBack(&e.state, now) })
	}
	return nil
}

// change changes the entry of a key that is there.
func (s *Store) change(key []byte, do func(e *entry, now int64)) {
	shard := s.shard(key)
	shard.mu.Lock()
	defer shard.mu.Unlock()
	if at, known := shard.index[string(key)]; known {
		do(&shard.entries[at], s.now())
	}
}

// Renew keeps the slots of a call in flight for another window each.
func (s *Store) Renew(_ context.Context, slots []algorithm.Charge) error {
	for i := range slots {
		s.renew(&slots[i])
	}
	return nil
}

func (s *Store) renew(slot *algorithm.Charge) {
	shard := s.shard(slot.Key)
	shard.mu.Lock()
	defer shard.mu.Unlock()
	now := s.now()
	e := s.entry(shard, slot.Key, now)
	slot.Limit.Renew(&e.state, now, slot.Mark)
	e.freshAt = now + slot.Limit.Window
}

// Records are the calls that count in a log now, newest first.
func (s *Store) Records(_ context.Context, key []byte, limit *algorithm.Limit) (records []algorithm.Record, err error) {
	s.change(key, func(e *entry, now int64) { records = limit.Records(&e.state, now) })
	return records, nil
}

// Ban bans a subject by hand, for so many microseconds. The key is that of its ban.
func (s *Store) Ban(_ context.Context, key []byte, span int64) error {
	shard := s.shard(key)
	shard.mu.Lock()
	defer shard.mu.Unlock()
	now := s.now()
	e := s.entry(shard, key, now)
	e.freshAt = now + e.state.Impose(now, span)
	return nil
}

// Reset forgets a key.
func (s *Store) Reset(_ context.Context, key []byte) error {
	shard := s.shard(key)
	shard.mu.Lock()
	defer shard.mu.Unlock()
	if at, known := shard.index[string(key)]; known {
		shard.remove(at)
		s.keys.Add(-1)
	}
	return nil
}

// InBackground runs at once what another store does in the background: here nothing waits for anybody.
func (s *Store) InBackground(do func()) { do() }
