package memstore

import (
	"fmt"
	"strconv"
	"testing"

	"github.com/accesslimit/accesslimit/core/internal/algorithm"
)

// sizes are the sizes of tables of one shard and of many.
var sizes = []int{1, 100, 5000}

// However many keys come, the table holds at most MaxKeys, and counts those that it holds.
func TestMaxKeysIsNeverExceeded(t *testing.T) {
	for _, maxKeys := range sizes {
		s, c := newStore(maxKeys)
		limit := minute(1)
		for i := range 5 * maxKeys {
			s.take(fmt.Sprint("key", i), limit)
			c.now += 10
			if s.Len() > maxKeys {
				t.Fatalf("%d keys, at most %d may be", s.Len(), maxKeys)
			}
		}
		if said, there := s.size(); said < maxKeys*9/10 || said != there {
			t.Errorf("%d keys are said to be there, %d are, of %d", said, there, maxKeys)
		}
	}
}

// The bound holds when the keys are spread unevenly: first all in one shard, then one in each of
// the others.
func TestMaxKeysIsNotExceededByEmptyShards(t *testing.T) {
	const maxKeys = 5000
	s, _ := newStore(maxKeys)
	limit, key := minute(1), []byte(nil)
	for i := 0; s.Len() < maxKeys && i < 2_000_000; i++ {
		if key = strconv.AppendInt(key[:0], int64(i), 10); s.shardOf(s.hash(key)) == 0 {
			s.take(string(key), limit)
		}
	}
	for i := range 1000 {
		s.take(fmt.Sprint("other", i), limit)
	}
	if said, there := s.size(); said > maxKeys || there > maxKeys {
		t.Errorf("%d keys, at most %d may be", there, maxKeys)
	}
}

// A flood of new keys, each asked for once, evicts its own keys. A busy key that is used up stays.
func TestFloodDoesNotEvictTheBusy(t *testing.T) {
	for _, maxKeys := range sizes[1:] {
		for name, limit := range limits(t, 3) {
			s, c := newStore(maxKeys)
			busy := 0
			for i := range 20 * maxKeys {
				if i%(maxKeys/20) == 0 && s.take("busy", limit) {
					busy++
				}
				s.take(fmt.Sprint("key", i), limit)
			}
			if busy != 3 {
				t.Errorf("%s, table of %d: %d permits of a key that has 3", name, maxKeys, busy)
			}
			c.now += 2 * second
			if !s.take("busy", limit) {
				t.Errorf("%s, table of %d: no permit after a window", name, maxKeys)
			}
		}
	}
}

// Counters of one call do not evict each other, even if there are more of them than the table may
// hold, or if all others are busy.
func TestCountersOfOneCallDoNotEvictEachOther(t *testing.T) {
	for _, maxKeys := range []int{1, 2, 3, 4} {
		for name, limit := range limits(t, 2) {
			s, _ := newStore(maxKeys)
			for i := range 2 { // busy keys of others
				s.take(fmt.Sprint("other", i), limit)
				s.take(fmt.Sprint("other", i), limit)
			}
			call := []algorithm.Counter{counter("first", limit), counter("second", minute(5)), counter("third", minute(5))}
			for i := range 5 {
				if passed := algorithm.Passes(call, s.decide(true, call...)); passed != (i < 2) {
					t.Errorf("%s, table of %d: call %d passed: %v", name, maxKeys, i, passed)
				}
			}
			if said, there := s.size(); said > max(maxKeys, len(call)) || said != there {
				t.Errorf("%s, table of %d: %d keys, of which %d are there", name, maxKeys, said, there)
			}
		}
	}
}

// A key that nobody asks for is evicted before one that is asked for, and one that equals a fresh
// one before both.
func TestFreshKeysAreEvictedFirst(t *testing.T) {
	s, c := newStore(3)
	long, short := minute(2), limits(t, 2)["fixed window"]
	s.take("idle", long)
	s.take("short", short)
	s.take("asked", long)
	s.take("short", short)
	s.take("asked", long)
	c.now += second
	s.take("new", long)
	s.take("newer", long)
	for key, want := range map[string]int64{"idle": 2, "asked": 0, "new": 1, "newer": 1} {
		if left := s.left(key, long); left != want {
			t.Errorf("%s has %d left, want %d", key, left, want)
		}
	}
}

// A sweep removes the entries that equal fresh ones, and nothing else.
func TestSweepDropsFreshEntries(t *testing.T) {
	for _, maxKeys := range sizes[1:] {
		for name, limit := range limits(t, 2) {
			s, c := newStore(maxKeys)
			for i := range 50 {
				s.take(fmt.Sprint("short", i), limit)
				s.take(fmt.Sprint("long", i), minute(1))
			}
			if !s.Sweep() || s.Len() != 100 {
				t.Errorf("%s: a sweep at once left %d of 100 keys", name, s.Len())
			}
			c.now += 2 * second
			left := s.Sweep()
			if said, there := s.size(); !left || said != 50 || there != 50 {
				t.Errorf("%s: %d keys left, want the 50 that still count", name, said)
			}
			for i := range 50 {
				if s.take(fmt.Sprint("long", i), minute(1)) {
					t.Fatalf("%s: the sweep forgot a key that counts", name)
				}
			}
			c.now += 60 * second
			if s.Sweep() || s.Len() != 0 {
				t.Errorf("%s: %d keys left of none that count", name, s.Len())
			}
			if !s.take("short0", limit) || s.Len() != 1 {
				t.Errorf("%s: an emptied table does not count on", name)
			}
		}
	}
}

// size returns how many keys the store says to have, and how many its table has, while nobody else can
// touch it.
func (s *Store) size() (said, there int) {
	for i := range s.shards {
		s.shards[i].mu.Lock()
		defer s.shards[i].mu.Unlock()
	}
	for i := range s.shards {
		there += s.shards[i].sound()
	}
	return s.Len(), there
}

// sound returns how many entries a table has. It returns -1 if one of them is not found by its key,
// or if the index has anything else.
func (t *table) sound() int {
	written := 0
	for _, slot := range t.slots {
		if slot != 0 {
			written++
		}
	}
	for index := range t.entries {
		if t.indexOf(t.entries[index].appendTo(nil), t.tagOf(index)) != index {
			return -1
		}
	}
	if written != len(t.entries) {
		return -1
	}
	return written
}
