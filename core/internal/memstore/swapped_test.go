package memstore

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/accesslimit/accesslimit/core/internal/algorithm"
)

// ownTime is a store with its own clock, and a time of it that is a while off.
func ownTime(t *testing.T) (s *Store, later int64) {
	s = New(100, nil)
	t.Cleanup(s.Close)
	return s, s.early() + 1000*second
}

// takeAt asks for one permit with a time that was read before the lock.
func (s *Store) takeAt(key string, limit *algorithm.Limit, early int64) algorithm.Verdict {
	var v algorithm.Verdict
	c := counter(key, limit)
	s.decideOne(&c, true, early, &v)
	return v
}

// Of two callers that read the clock, the second may come to the lock first. The time of the other does not count as a clock that
// stepped back, which would start windows over and refill nothing: it counts as no earlier than what was decided.
func TestTimesInSwappedOrder(t *testing.T) {
	for name, limit := range limits(t, 1) {
		s, later := ownTime(t)
		later += second - later%second
		first := s.takeAt("key", limit, later)
		second := s.takeAt("key", limit, later-1)
		if first.RetryAfter != 0 || second.RetryAfter == 0 || second.At != later {
			t.Errorf("%s: %+v, and then with an earlier time %+v", name, first, second)
		}
		free := later + second.RetryAfter
		if v := s.takeAt("key", limit, free-1); v.RetryAfter != 1 {
			t.Errorf("%s: 1 µs before the permit is back: %+v", name, v)
		}
		if v := s.takeAt("key", limit, free); v.RetryAfter != 0 {
			t.Errorf("%s: when the permit is back: %+v", name, v)
		}
	}
}

// Nor does what others forgot meanwhile come back: a key that was swept is fresh from then on, not from a moment before.
func TestTimesBeforeASweep(t *testing.T) {
	s, later := ownTime(t)
	limit := limits(t, 1)["sliding window"]
	shard := &s.shards[0]
	v := s.takeAt("key", limit, later)
	shard.mu.Lock()
	_, dropped := shard.dropFresh(1, s.at(shard, later+v.ResetAfter).awake)
	shard.mu.Unlock()
	if again := s.takeAt("key", limit, later+1); dropped != 1 || again.At != later+v.ResetAfter {
		t.Errorf("%d dropped, then %+v", dropped, again)
	}
}

// A call over several shards leaves its time in each.
func TestTimesOverSeveralShards(t *testing.T) {
	s := New(100_000, nil)
	defer s.Close()
	limit := minute(100)
	var call []algorithm.Counter
	for i := range 20 {
		call = append(call, counter(fmt.Sprint("key", i), limit))
	}
	ahead := s.early() + 1000*second
	s.takeAt("key7", limit, ahead)
	for _, v := range s.decide(true, call...) {
		if v.At != ahead || v.RetryAfter != 0 {
			t.Errorf("%+v, want it at %d", v, ahead)
		}
	}
	for i := range call {
		if v := s.takeAt(fmt.Sprint("key", i), limit, ahead-1); v.At != ahead {
			t.Errorf("key %d: at %d, want %d", i, v.At, ahead)
		}
	}
}

// With its own clock, which each caller reads before the lock, one hot key admits its permits and not one more.
func TestHotKeyWithTheOwnClock(t *testing.T) {
	const most, long = 2000, algorithm.MaxWindow
	bucket, err := algorithm.Bucketed(most, long, most)
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]*algorithm.Limit{"bucket": &bucket}
	for name, kind := range map[string]algorithm.Kind{"sliding window": algorithm.SlidingWindow, "fixed window": algorithm.FixedWindow} {
		all[name] = new(algorithm.Windowed(kind, most, long))
	}
	for name, limit := range all {
		s := New(100_000, nil)
		var admitted atomic.Int64
		together(func(int) {
			call, v := []algorithm.Counter{counter("key", limit)}, make([]algorithm.Verdict, 1)
			for range 100 {
				if s.Decide(context.Background(), call, true, v); v[0].RetryAfter == 0 {
					admitted.Add(1)
				}
			}
		})
		s.Close()
		if admitted.Load() != most {
			t.Errorf("%s: %d admitted, want %d", name, admitted.Load(), most)
		}
	}
}
