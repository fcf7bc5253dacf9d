package memstore

import (
	"context"
	"testing"

	"github.com/accesslimit/accesslimit/core/internal/algorithm"
)

const second = 1_000_000

// testClock is a time that a test sets, in microseconds.
type testClock struct{ now int64 }

func (c *testClock) read() int64 { return c.now }

// newStore returns a store whose time stands still until the test moves it, and that sweeps only
// when the test says so.
func newStore(maxKeys int) (*Store, *testClock) {
	c := &testClock{now: 3_000_000_000 * second}
	s := New(maxKeys, c.read)
	s.Close()
	return s, c
}

// limits returns a limit of so many permits a second for each algorithm that keeps a few numbers.
// The bucket by the hour counts milliseconds.
func limits(t testing.TB, most int64) map[string]*algorithm.Limit {
	t.Helper()
	all := map[string]*algorithm.Limit{"bucket": bucket(t, most, second, most), "bucket by the hour": bucket(t, 3600*most, 3600*second, most)}
	for name, kind := range map[string]algorithm.Kind{
		"sliding window": algorithm.SlidingWindow, "fixed window": algorithm.FixedWindow, "calendar window": algorithm.CalendarWindow,
	} {
		all[name] = new(algorithm.Windowed(kind, most, second))
	}
	return all
}

// bucket returns the limit of a bucket, which must be possible.
func bucket(t testing.TB, rate, window, burst int64) *algorithm.Limit {
	t.Helper()
	limit, err := algorithm.Bucketed(rate, window, burst)
	if err != nil {
		t.Fatal(err)
	}
	return &limit
}

// minute returns a limit of so many permits a minute.
func minute(most int64) *algorithm.Limit {
	l := algorithm.Windowed(algorithm.FixedWindow, most, 60*second)
	return &l
}

// counter returns a counter with a cost of one permit of a key.
func counter(key string, limit *algorithm.Limit) algorithm.Counter {
	return algorithm.Counter{Key: []byte(key), Limit: limit, Cost: 1}
}

// decide decides over counters together.
func (s *Store) decide(charge bool, counters ...algorithm.Counter) []algorithm.Verdict {
	if charge {
		return s.do(algorithm.AllOrNone, counters...)
	}
	return s.do(algorithm.Looks, counters...)
}

func (s *Store) do(m algorithm.Mode, counters ...algorithm.Counter) []algorithm.Verdict {
	op := algorithm.NewOp(m, counters...)
	s.Do(context.Background(), op)
	return op.Verdicts
}

// reserve takes a turn at a bucket.
func (s *Store) reserve(c algorithm.Counter, patience int64) algorithm.Verdict {
	op := algorithm.NewOp(algorithm.InTurn, c)
	op.Patience = patience
	s.Do(context.Background(), op)
	return op.Verdicts[0]
}

// take takes one permit of a key, and reports whether there was one.
func (s *Store) take(key string, limit *algorithm.Limit) bool {
	return s.decide(true, counter(key, limit))[0].RetryAfter == 0
}

// left returns how many permits a key has left.
func (s *Store) left(key string, limit *algorithm.Limit) int64 {
	return s.decide(false, counter(key, limit))[0].Remaining
}

// A key that the caller reuses for the next call does not change the store.
func TestKeysAreCopied(t *testing.T) {
	s, _ := newStore(100)
	limit, key := minute(1), []byte("key 1")
	s.decide(true, algorithm.Counter{Key: key, Limit: limit, Cost: 1})
	key[4] = '2'
	if s.take("key 1", limit) || !s.take("key 2", limit) {
		t.Error("the charge went where the caller's bytes did")
	}
}
