package memstore

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/accesslimit/accesslimit/core/internal/algorithm"
)

// newWithWallClock is a store with its own clock. The wall clock is off by wall, in nanoseconds.
func newWithWallClock() (s *Store, wall *atomic.Int64) {
	s, wall = New(100, nil), new(atomic.Int64)
	start := time.Now()
	s.own.Read = func() (int64, int64) { return time.Now().UnixNano() + wall.Load(), int64(time.Since(start)) }
	s.left("key", minute(1))
	return s, wall
}

// withWallClock runs a test with each algorithm, of one permit a second.
func withWallClock(t *testing.T, test func(t *testing.T, s *Store, limit *algorithm.Limit, wall *atomic.Int64)) {
	all := limits(t, 1)
	all["sliding log"] = new(algorithm.Windowed(algorithm.SlidingLog, 1, second))
	for name, limit := range all {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, wall := newWithWallClock()
				defer s.Close()
				test(t, s, limit, wall)
			})
		})
	}
}

// soon is when the store has surely looked at the wall clock.
const soon = 20 * time.Millisecond

// While the machine was suspended time went on: permits came back, and the window is that of the wall clock.
func TestTimeGoesOnWhileSuspended(t *testing.T) {
	withWallClock(t, func(t *testing.T, s *Store, limit *algorithm.Limit, wall *atomic.Int64) {
		s.take("key", limit)
		wall.Store(int64(12 * time.Hour))
		time.Sleep(soon)
		v := s.decide(true, counter("key", limit))[0]
		if now := time.Now().UnixMicro() + wall.Load()/1000; v.RetryAfter != 0 || v.At != now {
			t.Errorf("12 hours later: %+v, want it at %d", v, now)
		}
		if s.take("key", limit) {
			t.Error("more than one permit came back")
		}
	})
}

// A wall clock that is set back creates no permits, and keeps nobody waiting for longer than a window, or a key in the table. That
// holds for a key that many ask for at once, too.
func TestClockSetBack(t *testing.T) {
	for _, hot := range []bool{false, true} {
		withWallClock(t, func(t *testing.T, s *Store, limit *algorithm.Limit, wall *atomic.Int64) {
			c := counter("key", limit)
			s.take("forgotten", limit)
			if !hot {
				s.take("key", limit)
			} else if s.Heat(&c); limit.Kind != algorithm.SlidingLog && !s.HasCell() {
				t.Error("the hot key is in its table")
			}
			wall.Store(int64(-366 * 24 * time.Hour))
			time.Sleep(soon)
			v := s.decide(true, c)[0]
			if now := time.Now().UnixMicro() + wall.Load()/1000; v.At != now || v.RetryAfter == 0 || v.RetryAfter > second*33/32 {
				t.Errorf("set back a year: %+v, want a refusal at %d", v, now)
			}
			if again := s.decide(true, c)[0]; again != v {
				t.Errorf("asked again %+v, after %+v", again, v)
			}
			time.Sleep(time.Duration(v.RetryAfter-1) * time.Microsecond) // the sweeper must not forget what counts as used now
			if s.take("key", limit) {
				t.Error("a permit 1 µs before the wait is over")
			}
			time.Sleep(time.Microsecond)
			if !s.take("key", limit) {
				t.Error("no permit after the wait")
			}
			time.Sleep(4 * time.Second)
			if s.Len() != 0 {
				t.Errorf("%d keys are left of none that count", s.Len())
			}
		})
	}
}

// The calls that hold slots were suspended, too, and go on. So their slots are theirs until they had the time to renew them,
// wherever the wall clock goes.
func TestSlotsAreHeldWhileSuspended(t *testing.T) {
	limit := algorithm.Windowed(algorithm.Concurrency, 1, 30*second)
	take := func(s *Store, holder string) bool {
		slot := algorithm.Counter{Key: []byte("slots"), Limit: &limit, Cost: 1, Mark: holder}
		return s.decide(true, slot)[0].RetryAfter == 0
	}
	for _, jump := range []time.Duration{12 * time.Hour, -12 * time.Hour} {
		synctest.Test(t, func(t *testing.T) {
			s, wall := newWithWallClock()
			defer s.Close()
			if !take(s, "before") {
				t.Fatal("no slot")
			}
			wall.Store(int64(jump))
			time.Sleep(10 * time.Second)
			if take(s, "after") {
				t.Errorf("%v later there is a second slot", jump)
			}
			_ = s.Renew(context.Background(), []algorithm.Charge{{Key: []byte("slots"), Limit: &limit, Mark: "before"}})
			time.Sleep(30*time.Second - time.Microsecond)
			if take(s, "after") {
				t.Errorf("%v later, the renewed slot is not held for a window", jump)
			}
			time.Sleep(time.Microsecond)
			if !take(s, "after") {
				t.Errorf("%v later, the slot is held for longer than a window", jump)
			}
		})
	}
}
