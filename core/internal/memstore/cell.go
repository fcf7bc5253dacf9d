package memstore

import (
	"math"
	"sync/atomic"

	"github.com/accesslimit/accesslimit/core/internal/algorithm"
)

// cell is a counter that several goroutines charge at the same time. While it is open, they need no
// lock for it. Every call that locks its shard closes it first, and so finds the counter in the
// table. A busy key takes 60 to 70 ns a call in a cell; under the lock, two processors waiting for
// each other made it 230 (BenchmarkDecide).
type cell struct {
	key   string
	limit *algorithm.Limit
	slot  uint8
	word  algorithm.Word
	ahead int64    // by how many microseconds the time of the word is ahead of instant.awake
	_     [56]byte // so that a charge does not take the cache line of the fields above from their readers
	value atomic.Int64
	last  atomic.Int64 // when it was charged last, by instant.awake
	_     [48]byte
}

// closed is the value of a cell that must not be charged any more.
const closed = math.MinInt64

// cells holds the open cells by hash. If two cells share a slot, the later one is found.
type cells [256]atomic.Pointer[cell]

func cellSlot(hash uint64) uint8 { return uint8(hash >> 40) }

// chargeCell charges a counter that has an open cell. It reports false if there is none, if the cost
// does not fit, or if the clock was set since the cell was opened.
func (s *Store) chargeCell(c *algorithm.Counter, hash uint64, arrived int64, v *algorithm.Verdict) bool {
	open := s.cells[cellSlot(hash)].Load()
	if open == nil || open.limit != c.Limit || c.Cost <= 0 || open.ahead != s.own.Ahead() || open.key != string(c.Key) {
		return false
	}
	now := arrived + open.ahead
	for {
		value := open.value.Load()
		if value == closed {
			return false
		}
		next, fits := open.word.Charge(value, now, c.Cost)
		if !fits {
			return false
		}
		if open.value.CompareAndSwap(value, next) {
			open.last.Store(arrived)
			*v = open.word.Answer(next, now, c.Cost)
			return true
		}
	}
}

// lock locks a shard, and reports whether it had to wait.
func (s *Store) lock(shard *shard) (waited bool) {
	if waited = !shard.mu.TryLock(); waited {
		shard.mu.Lock()
	}
	if shard.open != nil {
		s.closeCell(shard)
	}
	return waited
}

// openCell opens a cell for an entry that was just charged by a call that had waited for the lock,
// if the last such call charged the same entry.
func (s *Store) openCell(shard *shard, e *entry, c *algorithm.Counter, hash uint64, t instant) {
	place := shard.placeOf(c.Key, tag(hash))
	if place != shard.waitedFor || s.clock != nil {
		shard.waitedFor = place
		return
	}
	word, value, ok := c.Limit.AsWord(&e.state, t.now)
	if !ok {
		return
	}
	open := &cell{key: string(c.Key), limit: c.Limit, slot: cellSlot(hash), word: word, ahead: t.now - t.awake}
	open.value.Store(value)
	open.last.Store(t.awake)
	shard.open = open
	s.cells[open.slot].Store(open)
}

// closeCell moves the count of the shard's cell back into its entry, which is still there: nothing
// has changed the table meanwhile. The state is written as of the last charge, as without a cell: a
// call by another rate would find another use at a later time. No later call under the lock is at
// an earlier time than that: see timeIn.
func (s *Store) closeCell(shard *shard) {
	open := shard.open
	shard.open = nil
	value := open.value.Swap(closed)
	s.cells[open.slot].CompareAndSwap(open, nil)
	e := shard.find([]byte(open.key), tag(s.hash([]byte(open.key))))
	last := open.last.Load()
	shard.newest = max(shard.newest, last)
	e.freshAt = open.word.Back(value, last+open.ahead, &e.state) - open.ahead
	e.setCalled()
}
