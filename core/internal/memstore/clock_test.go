package memstore

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/accesslimit/accesslimit/core/internal/algorithm"
	"github.com/accesslimit/accesslimit/internal/bounded"
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

// soon is the time within which the store looks at the wall clock.
const soon = 20 * time.Millisecond

// Time goes on while the machine is suspended: permits come back, and the window is that of the
// wall clock.
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

// A wall clock that is set back creates no permits. It keeps no caller waiting for longer than a
// window, and no key in the table for longer. That also holds for a key with a cell.
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
			// The sweeper must not forget use that counts as made now.
			time.Sleep(time.Duration(v.RetryAfter-1) * time.Microsecond)
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

// A window that ends at a time of the wall clock lasts longer if that is set back within it. The sweeper
// must not forget what was used, even if nobody asks until the end, or the clock is set several times.
func TestClockSetBackWithinAWindow(t *testing.T) {
	for name, charge := range map[string]func(s *Store, c algorithm.Counter){
		"one":      func(s *Store, c algorithm.Counter) { s.decide(true, c) },
		"together": func(s *Store, c algorithm.Counter) { s.decide(true, counter("other", minute(1)), c) },
		"in debt": func(s *Store, c algorithm.Counter) {
			op := algorithm.NewOp(algorithm.InDebt, c)
			op.Share = 1
			s.Do(context.Background(), op)
		},
		"in a cell": func(s *Store, c algorithm.Counter) { s.Heat(&c) },
	} {
		t.Run(name, func(t *testing.T) {
			inHours(t, charge, func(s *Store, wall *atomic.Int64, take func() bool) {
				for _, back := range []time.Duration{20, 40} {
					time.Sleep(5 * time.Minute)
					wall.Store(-int64(back * time.Minute))
				}
				time.Sleep(40*time.Minute - time.Microsecond)
				if take() {
					t.Error("a permit before the hour is over")
				}
				time.Sleep(time.Microsecond)
				if !take() {
					t.Error("no permit in the next hour")
				}
			})
		})
	}
}

// A clock that was wrong for a while, once or again and again, keeps nothing in the table for longer
// than a window.
func TestClockSetThereAndBack(t *testing.T) {
	charge := func(s *Store, c algorithm.Counter) { s.decide(true, c) }
	for _, off := range []time.Duration{time.Hour, -time.Minute, 50 * 365 * 24 * time.Hour} {
		inHours(t, charge, func(s *Store, wall *atomic.Int64, take func() bool) {
			for range 4 {
				wall.Store(int64(off))
				time.Sleep(time.Minute)
				wall.Store(0)
				time.Sleep(time.Minute)
			}
			if take() {
				t.Errorf("%v: a permit before the hour is over", off)
			}
		})
	}
}

// inHours charges a counter of one permit an hour, 50 minutes after it began. After the test, nothing must
// be left of it within two hours.
func inHours(t *testing.T, charge func(*Store, algorithm.Counter), test func(s *Store, wall *atomic.Int64, take func() bool)) {
	synctest.Test(t, func(t *testing.T) {
		s, wall := newWithWallClock()
		defer s.Close()
		limit := algorithm.Windowed(algorithm.CalendarWindow, 1, 3600*second)
		c := counter("p:{s}:n:"+limit.Span(), &limit)
		time.Sleep(50 * time.Minute)
		charge(s, c)
		test(s, wall, func() bool { return s.decide(true, c)[0].RetryAfter == 0 })
		time.Sleep(2*time.Hour + 2*time.Second)
		if n := s.Len(); n != 0 {
			t.Errorf("%d keys are left of none that count", n)
		}
	})
}

// If the clock steps back, a call that charges nothing counts the use as made now, too. The sweeper must
// not forget that before it is over.
func TestClockSetBackByACallThatChargesNothing(t *testing.T) {
	limit, err := algorithm.Bucketed(1, 60*second, 1)
	if err != nil {
		t.Fatal(err)
	}
	c := counter("key", &limit)
	for name, call := range map[string]func(s *Store){
		"refused":  func(s *Store) { s.decide(true, c) },
		"together": func(s *Store) { s.decide(true, c, counter("other", &limit)) },
		"reserved": func(s *Store) { s.reserve(c, 0) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, wall := newWithWallClock()
				defer s.Close()
				s.take("key", &limit)
				time.Sleep(30 * time.Second)
				wall.Store(int64(-366 * 24 * time.Hour))
				time.Sleep(soon)
				call(s)
				wait := s.decide(false, c)[0].RetryAfter
				if wait < 50*second {
					t.Fatalf("a wait of %d", wait)
				}
				time.Sleep(time.Duration(wait-1) * time.Microsecond)
				if s.take("key", &limit) {
					t.Error("a permit 1 µs before the wait is over")
				}
				time.Sleep(time.Microsecond)
				if !s.take("key", &limit) {
					t.Error("no permit after the wait")
				}
			})
		})
	}
}

// Calls that hold slots were suspended, too, and go on. So they keep their slots until they have
// had the time to renew them, whatever the wall clock does.
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
			_ = s.Change(context.Background(), &algorithm.Change{Kind: algorithm.Renews, Charges: []algorithm.Charge{{Key: []byte("slots"), Limit: &limit, Mark: "before"}}})
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

// ownTime is a store with its own clock, and a time of it that is a while off.
func ownTime(t *testing.T) (s *Store, later int64) {
	s = New(100, nil)
	bounded.Cleanup(t, s.Close)
	return s, s.arrival() + 1000*second
}

// takeAt asks for one permit with a time that was read before the lock.
func (s *Store) takeAt(key string, limit *algorithm.Limit, arrived int64) algorithm.Verdict {
	var v algorithm.Verdict
	c := counter(key, limit)
	s.decideOne(&c, true, arrived, &v)
	return v
}

// Of two callers that read the clock, the second may get the lock first. The time of the other must
// not count as a clock that stepped back, which would start windows over and refill nothing.
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

// The same holds if the other one has charged a cell: a refusal at the earlier time, for which the
// cell is closed, brings back nothing.
func TestTimesInSwappedOrderOfACell(t *testing.T) {
	for name, limit := range limits(t, 10) {
		hot, begin := ownTime(t)
		begin += second - begin%second
		c := counter("key", limit)
		hot.heatAt(&c, begin)
		inTable, _ := ownTime(t)
		inTable.takeAt("key", limit, begin)
		for i, call := range []struct{ cost, at int64 }{{1, 20_000}, {9, 5000}, {1, 20_001}} {
			if !hot.HasCell() && i < 2 {
				t.Errorf("%s: the hot key is in its table", name)
			}
			var v, want algorithm.Verdict
			c.Cost = call.cost
			hot.decideOne(&c, true, begin+call.at, &v)
			inTable.decideOne(&c, true, begin+call.at, &want)
			if v != want || (v.RetryAfter > 0) != (call.cost == 9) {
				t.Errorf("%s, call %d: %+v, want %+v", name, i, v, want)
			}
		}
	}
}

// A key that was swept meanwhile is fresh from then on, and not from a moment before.
func TestTimesBeforeASweep(t *testing.T) {
	s, later := ownTime(t)
	limit := limits(t, 1)["sliding window"]
	shard := &s.shards[0]
	v := s.takeAt("key", limit, later)
	shard.mu.Lock()
	_, dropped := shard.dropFresh(1, s.timeIn(shard, later+v.ResetAfter).awake)
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
	ahead := s.arrival() + 1000*second
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
