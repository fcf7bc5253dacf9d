package memstore

import (
	"context"
	"slices"

	"github.com/accesslimit/accesslimit/core/internal/algorithm"
)

// takeTurn takes a turn at a bucket, if it comes within patience, in microseconds.
func (s *Store) takeTurn(c *algorithm.Counter, patience int64, v *algorithm.Verdict) {
	s.locked(c.Key, func(shard *shard, hash uint64, t instant) {
		e, state := shard.lookUp(c.Key, tag(hash))
		var lives int64
		if *v, lives = c.Limit.Reserve(state, t.now, c.Cost, patience); lives == 0 {
			if e != nil {
				e.keep(t, v.ResetAfter)
			}
			return // neither a refused call nor one without a cost creates an entry
		}
		if e == nil {
			e = s.create(shard, c.Key, hash, t, nil)
			e.state = *state
		}
		e.freshAt = t.awake + lives
	})
}

// Change changes counters after calls. It never fails.
func (s *Store) Change(_ context.Context, c *algorithm.Change) error {
	switch c.Kind {
	case algorithm.GivesBack:
		for i := range c.Charges {
			s.change(c.Charges[i].Key, func(e *entry, t instant) { c.Lost += e.giveBack(&c.Charges[i], t) })
		}
	case algorithm.Renews:
		s.renew(c.Charges)
	case algorithm.Pauses:
		s.pause(c)
	case algorithm.EndsPause:
		s.change(c.Key, func(e *entry, t instant) {
			if e.state.PauseOver(t.now) {
				e.freshAt = t.awake
			}
		})
	case algorithm.ChangesBill:
		c.Billed = s.changeBill(c.Bill, c.To)
		c.Lost = c.Billed.Lost
	}
	if !c.Turn {
		s.refundsLost.Add(uint64(c.Lost))
	}
	return nil
}

// locked calls do while the shard of a key is locked.
func (s *Store) locked(key []byte, do func(shard *shard, hash uint64, t instant)) {
	hash := s.hash(key)
	shard, arrived := s.shard(hash), s.arrival()
	s.lock(shard)
	defer shard.mu.Unlock()
	do(shard, hash, s.timeIn(shard, arrived))
}

// giveBack gives a charge back, and returns how many permits may still have counted but were not given
// back.
func (e *entry) giveBack(c *algorithm.Charge, t instant) (lost int64) {
	empty, lost := c.GiveBack(&e.state, t.now)
	if empty {
		e.freshAt = min(e.freshAt, t.awake)
	} else {
		e.keep(t, 0)
	}
	return lost
}

// RefundsLost returns how many permits may still have counted but were not given back.
func (s *Store) RefundsLost() uint64 { return s.refundsLost.Load() }

// change calls do with the entry of a key, if there is one.
func (s *Store) change(key []byte, do func(e *entry, t instant)) {
	s.locked(key, func(shard *shard, hash uint64, t instant) {
		if e := shard.find(key, tag(hash)); e != nil {
			do(e, t)
		}
	})
}

// renew keeps the slots of a call in flight for another window each.
func (s *Store) renew(slots []algorithm.Charge) {
	own := func(n *name) bool {
		return slices.ContainsFunc(slots, func(slot algorithm.Charge) bool { return n.is(slot.Key) })
	}
	for i := range slots {
		slot := &slots[i]
		s.locked(slot.Key, func(shard *shard, hash uint64, t instant) {
			e := s.entry(shard, slot.Key, hash, t, own)
			slot.Limit.Renew(&e.state, t.of(slot.Limit), slot.Mark)
			e.freshAt = t.awake + slot.Limit.Window
		})
	}
}

// pause begins a pause of the calls that go out, or makes it longer.
func (s *Store) pause(c *algorithm.Change) {
	s.locked(c.Key, func(shard *shard, hash uint64, t instant) {
		e := s.entry(shard, c.Key, hash, t, nil)
		var lives int64
		c.Paused, lives = e.state.Pause(t.now, c.Pause)
		e.freshAt = t.awake + lives
	})
}

// Records returns the calls that count in a log now, newest first.
func (s *Store) Records(_ context.Context, key []byte, limit *algorithm.Limit) (records []algorithm.Record, err error) {
	s.change(key, func(e *entry, t instant) { records = limit.Records(&e.state, t.now) })
	return records, nil
}

// PauseOf returns the state of the pause with a key, and the time in microseconds since the epoch.
func (s *Store) PauseOf(key []byte) (p algorithm.PauseState, now int64) {
	now = s.Now()
	s.change(key, func(e *entry, t instant) { p, now = e.state.PauseAt(t.now), t.now })
	return p, now
}

// Post notes under a key that a limit reached a threshold. It reports whether that is new. The note
// lasts until ends, in microseconds since the epoch by the store's clock. The key must not be that
// of a counter.
func (s *Store) Post(key []byte, limit string, ends int64) (first bool) {
	s.locked(key, func(shard *shard, hash uint64, t instant) {
		var state algorithm.State
		if e := shard.find(key, tag(hash)); e != nil && e.freshAt > t.awake {
			state = e.state
		}
		var lives int64
		if first, lives = state.Note(limit, t.now, ends); first {
			e := s.entry(shard, key, hash, t, nil)
			e.state, e.freshAt = state, t.awake+lives
		}
	})
	return first
}

// Reset forgets keys, and reports whether there was anything to forget.
func (s *Store) Reset(_ context.Context, keys ...[]byte) (changed bool, err error) {
	for _, key := range keys {
		s.locked(key, func(shard *shard, hash uint64, t instant) {
			if index := shard.indexOf(key, tag(hash)); index >= 0 {
				changed = changed || shard.entries[index].freshAt > t.awake
				shard.remove(index)
				s.keys.Add(-1)
			}
		})
	}
	return changed, nil
}

// InBackground runs a function at once, because here nothing waits for anybody.
func (s *Store) InBackground(do func()) { do() }

// Now returns the time by which the store decides, in microseconds since the epoch.
func (s *Store) Now() int64 {
	if s.clock != nil {
		return s.clock()
	}
	return s.sinceEpoch(s.arrival())
}

// Passed returns a time in microseconds that does not step back when the wall clock does.
func (s *Store) Passed() int64 {
	if s.clock != nil {
		return s.clock()
	}
	return s.own.Passed()
}
