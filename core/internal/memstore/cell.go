package memstore

import (
	"math"
	"sync/atomic"

	"github.com/accesslimit/accesslimit/core/internal/algorithm"
)

// cell is a counter that several goroutines ask for at the same time: as long as it is open they need no lock for it. Whoever
// locks its shard, for whatever reason, closes it first and so finds the counter in the table. One hot key costs 60 to 70 ns a call
// by a cell, where two cores that wait for each other's lock made it 230.
type cell struct {
	key   string
	limit *algorithm.Limit
	slot  uint8
	word  algorithm.Word
	back  int64    // the time awake less that of the word, in microseconds
	_     [64]byte // who charges keeps no reader of the above waiting
	value atomic.Int64
	_     [56]byte
}

// closed is the value of a cell that is charged no more.
const closed = math.MinInt64

// cells are where those that are open are found, by hash. Of two with one hash the later one is.
type cells [256]atomic.Pointer[cell]

func slotOf(hash uint64) uint8 { return uint8(hash >> 40) }

// chargeCell charges a counter that has an open cell; false: it has none, or the call does not fit there.
func (s *Store) chargeCell(c *algorithm.Counter, hash uint64, early int64, v *algorithm.Verdict) bool {
	open := s.cells[slotOf(hash)].Load()
	if open == nil || open.limit != c.Limit || c.Cost <= 0 || open.key != string(c.Key) {
		return false
	}
	now := s.sinceEpoch(early)
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
			*v = open.word.Answer(next, now)
			return true
		}
	}
}

// lock locks a shard, and says whether somebody else had it.
func (s *Store) lock(shard *shard) (waited bool) {
	if waited = !shard.mu.TryLock(); waited {
		shard.mu.Lock()
	}
	if shard.open != nil {
		s.closeCell(shard)
	}
	return waited
}

// openCell opens a cell for an entry that was charged just now, when who charged it had to wait, and who waited before did for the
// same.
func (s *Store) openCell(shard *shard, e *entry, l *algorithm.Limit, hash uint64, t instant) {
	place := shard.placeOf([]byte(e.key), tag(hash))
	if place != shard.waitedFor || s.clock != nil {
		shard.waitedFor = place
		return
	}
	word, value, ok := l.AsWord(&e.state, t.now)
	if !ok {
		return
	}
	open := &cell{key: e.key, limit: l, slot: slotOf(hash), word: word, back: t.awake - t.now}
	open.value.Store(value)
	shard.open = open
	s.cells[open.slot].Store(open)
}

// closeCell puts what was counted in the shard's cell back into its entry, which is there: nothing was done to the table meanwhile.
// It does so in the time of the cell's word, though the clock may have stepped back since: the next look at the state sees to that.
func (s *Store) closeCell(shard *shard) {
	open := shard.open
	shard.open = nil
	value := open.value.Swap(closed)
	s.cells[open.slot].CompareAndSwap(open, nil)
	e := shard.find([]byte(open.key), tag(s.hash([]byte(open.key))))
	now := s.at(shard, s.early()).awake - open.back
	e.setFresh(open.word.Back(value, now, &e.state) + open.back)
	e.ask()
}
