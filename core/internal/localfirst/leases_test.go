package localfirst_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/accesslimit/accesslimit/core/internal/algorithm"
	"github.com/accesslimit/accesslimit/core/internal/localfirst"
)

// leased is a counter of which up to so many calls are taken in one trip.
func leased(subject string, limit *algorithm.Limit, cost, calls int64) algorithm.Counter {
	c := counter(subject, limit, cost)
	c.Lease = calls
	return c
}

// A hot key soon takes many permits in one trip, and every permit has what is left after it.
func TestManyPermitsInOneTrip(t *testing.T) {
	for _, kind := range []algorithm.Kind{algorithm.SlidingWindow, algorithm.FixedWindow} {
		t.Run(kind.Tag(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				behind := newShared(t, 100)
				s, c := newProcess(t, behind), leased("user:a", windowed(kind, 100_000, minute), 2, 1000)
				for i := range int64(20_000) {
					v := mustTake(t, s, c)
					if want := 100_000 - 2*(i+1); v.Remaining != want || v.ResetAfter <= 0 || v.ResetAfter > minute+minute/32 {
						t.Fatalf("call %d: %+v, want %d left", i, v, want)
					}
				}
				if trips := behind.asked.Load(); trips > 30 {
					t.Errorf("%d trips for 20,000 calls, of which one may bring 1000", trips)
				}
				s.Close()
				if got := left(t, behind, c); got != 60_000 {
					t.Errorf("%d left when all that is not used is given back, want 60,000", got)
				}
			})
		})
	}
}

// What is not used is given back when the lease ends, with nobody calling; and nothing is left running then.
func TestUnusedPermitsComeBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		behind := newShared(t, 100)
		s, c := newProcess(t, behind), leased("user:a", windowed(algorithm.SlidingWindow, 10_000, second), 1, 1000)
		for range 100 {
			mustTake(t, s, c)
		}
		if got := left(t, behind, c); got >= 9900 {
			t.Fatalf("%d left: nothing is leased", got)
		}
		time.Sleep(40 * time.Millisecond) // more than a sub-window
		if got := left(t, behind, c); got != 9900 {
			t.Errorf("%d left after the lease, want 9900", got)
		}
		for _, want := range []int64{2 * 37, 2, 2} { // twice what was used of the lease before
			mustTake(t, s, c)
			if got := behind.calls.Load(); got != want {
				t.Errorf("%d calls were asked for, want %d", got, want)
			}
			time.Sleep(40 * time.Millisecond)
		}
		time.Sleep(2 * time.Second)
		mustTake(t, s, c) // a cold key asks for one
		if got := behind.calls.Load(); got != 1 || left(t, behind, c) != 9999 {
			t.Errorf("%d calls were asked for, and %d are left", got, left(t, behind, c))
		}
	})
}

// A permit is never used in another sub-window than its own, nor after a second.
func TestALeaseEnds(t *testing.T) {
	for name, test := range map[string]struct {
		limit *algorithm.Limit
		life  time.Duration
	}{
		"with its sub-window":         {windowed(algorithm.SlidingWindow, 10_000, 16*second), second / 2 * time.Microsecond},
		"after a second":              {windowed(algorithm.SlidingWindow, 10_000, 320*second), time.Second},
		"after Window/32":             {windowed(algorithm.FixedWindow, 10_000, 16*second), second / 2 * time.Microsecond},
		"with its window, which ends": {windowed(algorithm.FixedWindow, 10_000, second), 20 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				behind := newShared(t, 100)
				s, c := newProcess(t, behind), leased("user:a", test.limit, 1, 1000)
				if test.life == 20*time.Millisecond { // of a window that began before
					mustTake(t, s, counter("user:a", test.limit, 1))
					time.Sleep(time.Second - test.life)
				}
				for range 10 { // 1, 2, 4 and 8 were leased
					mustTake(t, s, c)
				}
				time.Sleep(test.life - 2*time.Microsecond)
				if v := mustTake(t, s, c); v.From != algorithm.FromLease {
					t.Errorf("%+v at the end of the lease", v)
				}
				time.Sleep(2 * time.Microsecond)
				behind.asked.Store(0)
				if v := mustTake(t, s, c); v.From != algorithm.FromStore {
					t.Errorf("%+v after the lease", v)
				}
				behind.wantAsked(t, 1)
			})
		})
	}
}

// Callers who come at once share one trip, which asks for all of them, however few may be leased ahead: each is charged once, and
// nobody waits for trip after trip.
func TestCallersShareATrip(t *testing.T) {
	for _, most := range []int64{1, 2, 50} {
		t.Run(fmt.Sprint(most), func(t *testing.T) { callersShareATrip(t, most) })
	}
}

func callersShareATrip(t *testing.T, most int64) {
	synctest.Test(t, func(t *testing.T) {
		behind := newShared(t, 100)
		behind.before = func() { time.Sleep(time.Millisecond) }
		s, c := newProcess(t, behind), leased("user:a", windowed(algorithm.SlidingWindow, 500, hour), 1, most)
		var admitted, refused, asked atomic.Int64
		var all sync.WaitGroup
		for range 100 {
			all.Go(func() {
				for range 8 {
					switch v := ask(s, c)[0]; {
					case v.Err != nil || v.Ended != nil:
						t.Errorf("%+v", v)
					case v.RetryAfter > 0:
						refused.Add(1)
					default:
						admitted.Add(1)
					}
					if asked.Add(1) == 100 && behind.asked.Load() > 4 || behind.calls.Load() > 100 {
						t.Errorf("%d trips for 100 callers, the last for %d", behind.asked.Load(), behind.calls.Load())
					}
				}
			})
		}
		all.Wait()
		s.Close()
		if admitted.Load() != 500 || refused.Load() != 300 || left(t, behind, c) != 0 {
			t.Errorf("%d admitted and %d refused, with %d left", admitted.Load(), refused.Load(), left(t, behind, c))
		}
	})
}

// Who comes when a trip is on its way back, after its sub-window, gets no permit of it: that would be used in another than its own.
func TestWhoComesTooLateForATrip(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		behind := newShared(t, 100)
		s, c := newProcess(t, behind), leased("user:a", windowed(algorithm.SlidingWindow, 3200, 320_000), 1, 50)
		for range 20 {
			mustTake(t, s, c)
		}
		time.Sleep(29 * time.Millisecond) // a millisecond before the end of a sub-window
		behind.after = func() { time.Sleep(5 * time.Millisecond) }
		var early sync.WaitGroup
		early.Go(func() { mustTake(t, s, c) })
		time.Sleep(2 * time.Millisecond)
		asked := time.Now().UnixMicro()
		if v := mustTake(t, s, c); v.At < asked {
			t.Errorf("charged %d µs before it was asked for, in another sub-window", asked-v.At)
		}
		early.Wait()
	})
}

// Who leaves before the trip is back gets the context's error, on time; the permit is not lost, and the others get theirs.
func TestWhoLeavesATrip(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		behind := newShared(t, 100)
		behind.before = func() { time.Sleep(10 * time.Millisecond) }
		s, c := newProcess(t, behind), leased("user:a", windowed(algorithm.SlidingWindow, 500, hour), 1, 50)
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Millisecond)
		defer cancel()
		begin := time.Now()
		var stays sync.WaitGroup
		verdict := make([]algorithm.Verdict, 1)
		go func() {
			time.Sleep(time.Millisecond)
			stays.Go(func() { mustTake(t, s, c) })
		}()
		s.Decide(ctx, []algorithm.Counter{c}, true, verdict)
		if passed := time.Since(begin); passed != 5*time.Millisecond || !errors.Is(verdict[0].Ended, context.DeadlineExceeded) || verdict[0].Err != nil {
			t.Errorf("after %v: %+v", passed, verdict[0])
		}
		stays.Wait()
		behind.before = nil
		behind.asked.Store(0)
		s.Decide(ctx, []algorithm.Counter{c}, true, verdict) // who is gone already is not sent
		if !errors.Is(verdict[0].Ended, context.DeadlineExceeded) && verdict[0].From != algorithm.FromLease {
			t.Errorf("%+v", verdict[0])
		}
		behind.wantAsked(t, 0)
		s.Close()
		if got := left(t, behind, c); got < 498 || got > 499 {
			t.Errorf("%d left of 500 after one or two calls", got)
		}
	})
}

// A trip that fails is a failure for all who wait for it, and one that hangs is one within the timeout.
func TestATripThatFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		behind := newShared(t, 100)
		s, c := newProcess(t, behind), leased("user:a", windowed(algorithm.SlidingWindow, 500, hour), 1, 50)
		behind.before = func() { time.Sleep(patient + time.Second) }
		begin := time.Now()
		var all sync.WaitGroup
		for range 5 {
			all.Go(func() {
				if v := ask(s, c)[0]; v.Err == nil || v.Ended != nil || time.Since(begin) != patient {
					t.Errorf("after %v: %+v", time.Since(begin), v)
				}
			})
		}
		all.Wait()
		time.Sleep(2 * time.Second) // the trip that hung is back, and what it brought is over
		synctest.Wait()
		behind.before = nil
		behind.ill.Store(true)
		if v := ask(s, c)[0]; v.Err == nil {
			t.Errorf("%+v of a store that is ill", v)
		}
		behind.ill.Store(false)
		mustTake(t, s, c)
	})
}

// Reset drops what is leased: all of the limit is there again, and no more than that, also when a trip is under way.
func TestResetDropsLeases(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		behind := newShared(t, 100)
		s, c := newProcess(t, behind), leased("user:a", windowed(algorithm.SlidingWindow, 100, hour), 1, 50)
		for range 40 {
			mustTake(t, s, c)
		}
		_ = s.Reset(context.Background(), c.Key)
		behind.after = func() { time.Sleep(time.Millisecond) }
		var waits sync.WaitGroup
		waits.Go(func() { mustTake(t, s, c) }) // charged before the reset, and told after it
		synctest.Wait()
		_ = s.Reset(context.Background(), c.Key)
		waits.Wait()
		behind.after = nil
		for i := range int64(100) {
			if v := mustTake(t, s, c); v.Remaining != 99-i {
				t.Fatalf("call %d after a reset: %+v", i, v)
			}
		}
		mustRefuse(t, s, algorithm.FromStore, c)
		mustRefuse(t, s, algorithm.FromRefusal, c)
	})
}

// What was leased before a Reset is neither given back after it nor used: it would be others'
// permits.
func TestNothingLeasedOutlivesAReset(t *testing.T) {
	const most = 640
	for name, reset := range map[string]func(t *testing.T, behind *shared, s *localfirst.Store, c algorithm.Counter){
		"while it is given back": func(t *testing.T, behind *shared, s *localfirst.Store, c algorithm.Counter) {
			<-behind.backBegun // when the lease is a second old
			mustReset(t, s, c)
		},
		"before it is given back": func(t *testing.T, behind *shared, s *localfirst.Store, c algorithm.Counter) {
			behind.after = func() { time.Sleep(1100 * time.Millisecond) } // a trip so slow that nothing of it can be used later
			for behind.asked.Store(0); behind.asked.Load() == 0; {
				mustTake(t, s, c)
			}
			behind.after = nil
			mustReset(t, s, c)
		},
		"that is under way": func(t *testing.T, behind *shared, s *localfirst.Store, c algorithm.Counter) {
			behind.beforeReset = func() { time.Sleep(10 * time.Millisecond) }
			go mustReset(t, s, c)
			synctest.Wait()
			for range 50 {
				mustTake(t, s, c)
			}
			time.Sleep(20 * time.Millisecond)
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				behind := newShared(t, 100)
				behind.backBegun = make(chan struct{}, 100)
				behind.beforeBack = func() {
					behind.backBegun <- struct{}{}
					time.Sleep(10 * time.Millisecond)
				}
				s, c := newProcess(t, behind), leased("user:a", windowed(algorithm.SlidingWindow, most, hour), 1, 100)
				for range 50 {
					mustTake(t, s, c)
				}
				if got := left(t, behind, c); got >= most-50 {
					t.Fatalf("%d left: nothing is leased", got)
				}
				reset(t, behind, s, c)
				passed := 0
				for range 2 {
					for ask(s, c)[0].RetryAfter == 0 {
						passed++
					}
					time.Sleep(1100 * time.Millisecond) // until all is given back, and the refusal is forgotten
				}
				if passed != most {
					t.Errorf("%d calls passed after a Reset of a limit of %d", passed, most)
				}
			})
		})
	}
}

func mustReset(t *testing.T, s *localfirst.Store, c algorithm.Counter) {
	if err := s.Reset(context.Background(), c.Key); err != nil {
		t.Error(err)
	}
}

// A small limit loses nothing to leases that lie idle: two processes together get all of it.
func TestSmallLimitsAreNotHoarded(t *testing.T) {
	behind := newShared(t, 100)
	limit := windowed(algorithm.SlidingWindow, 5, hour)
	one, other := newProcess(t, behind), newProcess(t, behind)
	for i := range 5 {
		mustTake(t, one, leased("user:a", limit, 1, 5))
		if i < 4 {
			one, other = other, one
		}
	}
	mustRefuse(t, one, algorithm.FromStore, leased("user:a", limit, 1, 5))
	mustRefuse(t, other, algorithm.FromStore, leased("user:a", limit, 1, 5))
}

// What lies idle here is never more than a sub-window's share of the limit, nor more than is left
// for others, however many costs callers choose.
func TestLeasesLeaveSomeForOthers(t *testing.T) {
	for _, costs := range []int64{1, 10} {
		t.Run(fmt.Sprint(costs, " costs"), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				const most = 32_000
				behind := newShared(t, 100)
				s, limit := newProcess(t, behind), windowed(algorithm.SlidingWindow, most, hour)
				for used, i := int64(0), int64(0); used < most; i++ {
					cost := min(1+i/7%costs, most-used)
					mustTake(t, s, leased("user:a", limit, cost, 3200))
					used += cost
					others := left(t, behind, counter("user:a", limit, 1))
					if idle := most - used - others; idle < 0 || idle > most/32+2*costs || idle > others+2*costs {
						t.Fatalf("after %d permits %d lie idle, and others have %d", used, idle, others)
					}
				}
				mustRefuse(t, s, algorithm.FromStore, leased("user:a", limit, 1, 3200))
			})
		})
	}
}

// A call that costs more than is here gets the rest from the store. When that has less, it asks by
// itself.
func TestALeaseOfManyCosts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		behind := newShared(t, 100)
		s, limit := newProcess(t, behind), windowed(algorithm.SlidingWindow, 640, hour)
		take := func(cost int64) algorithm.Verdict { return mustTake(t, s, leased("user:a", limit, cost, 100)) }
		for range 40 {
			take(1)
		}
		idle := 600 - left(t, behind, counter("user:a", limit, 1))
		if idle < 1 {
			t.Fatalf("%d permits are leased", idle)
		}
		if v := take(600 - 3); v.Remaining != 3 {
			t.Errorf("%+v, want 3 left", v)
		}
		told := mustRefuse(t, s, algorithm.FromStore, leased("user:a", limit, 5, 100))
		if told.RetryAfter < hour/2 {
			t.Errorf("%+v", told)
		}
		take(2)
		if v := take(1); v.Remaining != 0 {
			t.Errorf("%+v, want nothing left", v)
		}
		if v := ask(s, leased("user:a", limit, 1, 100))[0]; v.RetryAfter == 0 {
			t.Errorf("%+v of a limit that is used up", v)
		}
	})
}

// Of however many keys permits are leased, so many are held; those beyond ask each time, and all is given back on Close.
func TestLeasesAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		behind := newShared(t, 100_000)
		s, limit := newProcess(t, behind), windowed(algorithm.SlidingWindow, 1000, hour)
		const keys, each = 6000, 5
		for i := range keys {
			for range each {
				mustTake(t, s, leased(fmt.Sprint("user:", i), limit, 1, 100))
			}
		}
		if n := s.Leases(); n > 4096 || n < 3000 {
			t.Errorf("%d leases are held", n)
		}
		s.Close()
		for i := range keys {
			if got := left(t, behind, counter(fmt.Sprint("user:", i), limit, 1)); got != 1000-each {
				t.Fatalf("key %d has %d left, want %d", i, got, 1000-each)
			}
		}
		for range 10 { // counting goes on
			mustTake(t, s, leased("user:0", limit, 1, 100))
		}
		if got := left(t, behind, counter("user:0", limit, 1)); got != 1000-each-10 {
			t.Errorf("%d left: a lease was taken when the store was closed", got)
		}
	})
}

// What is leased of one counter is nothing to another limit, or to a call of several counters; nor
// do other algorithms lease.
func TestWhatIsNotLeased(t *testing.T) {
	behind := newShared(t, 100)
	s, limit := newProcess(t, behind), windowed(algorithm.SlidingWindow, 10_000, hour)
	for range 50 {
		mustTake(t, s, leased("user:a", limit, 1, 100))
	}
	dry, free := leased("user:a", limit, 1, 100), leased("user:a", limit, 0, 100)
	dry.Dry = true
	for name, counters := range map[string][]algorithm.Counter{
		"not leased":      {counter("user:a", limit, 1)},
		"another limit":   {leased("user:a", windowed(algorithm.SlidingWindow, 20_000, hour), 1, 100)},
		"another counter": {leased("user:a", limit, 1, 100), counter("user:b", limit, 1)},
		"only tried":      {dry},
		"costs nothing":   {free},
		"a bucket":        {leased("bucket", bucket(t, 10_000, hour, 10_000), 1, 100)},
		"a log":           {leased("log", windowed(algorithm.SlidingLog, 10_000, hour), 1, 100)},
		"a calendar":      {leased("calendar", windowed(algorithm.CalendarWindow, 10_000, hour), 1, 100)},
	} {
		behind.asked.Store(0)
		if v := mustTake(t, s, counters...); v.From != algorithm.FromStore {
			t.Errorf("%s: %+v", name, v)
		}
		behind.wantAsked(t, 1)
	}
	s.Decide(context.Background(), []algorithm.Counter{leased("user:a", limit, 1, 100)}, false, make([]algorithm.Verdict, 1))
	behind.wantAsked(t, 1)
}

// Many goroutines of two processes, and resets of another key: every permit is used once or given back.
func TestLeasesUnderLoad(t *testing.T) {
	behind := newShared(t, 100)
	limit := windowed(algorithm.FixedWindow, 1_000_000, hour)
	one, other := newProcess(t, behind), newProcess(t, behind)
	var used [4]atomic.Int64
	var all sync.WaitGroup
	for i := range 16 {
		s, c := one, leased(fmt.Sprint("user:", i%4), limit, 1+int64(i%4), 500)
		if i >= 8 {
			s = other
		}
		all.Go(func() {
			for range 5000 {
				if v := ask(s, c)[0]; v.RetryAfter == 0 && v.Err == nil && v.Ended == nil {
					used[i%4].Add(c.Cost)
				}
			}
		})
		all.Go(func() {
			for range 20 { // a key that nobody charges
				_ = s.Reset(context.Background(), []byte("test:{nobody}"))
			}
		})
	}
	all.Wait()
	one.Close()
	other.Close()
	for i := range used {
		c := counter(fmt.Sprint("user:", i), limit, 1)
		if got := left(t, behind, c); got != 1_000_000-used[i].Load() || used[i].Load() != 4*5000*int64(1+i) {
			t.Errorf("key %d has %d left, and %d were used", i, got, used[i].Load())
		}
	}
}

// A Reset that comes while a trip is under way waits for it, so no permit is charged after it that nobody uses.
func TestResetWaitsForTheTrip(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		behind := newShared(t, 100)
		s, c := newProcess(t, behind), leased("user:a", windowed(algorithm.SlidingWindow, 3200, 24*hour), 1, 100)
		for range 300 {
			mustTake(t, s, c)
		}
		behind.before = func() { time.Sleep(10 * time.Millisecond) }
		var all sync.WaitGroup
		used := atomic.Int64{}
		for range 200 { // more than are here, so that a trip begins
			all.Go(func() {
				if v := ask(s, c)[0]; v.RetryAfter == 0 && v.Err == nil {
					used.Add(1)
				}
			})
		}
		time.Sleep(time.Millisecond)
		if err := s.Reset(context.Background(), c.Key); err != nil {
			t.Error(err)
		}
		all.Wait()
		behind.before = nil
		s.Close()
		if left := left(t, behind, c); left < 3200-used.Load() {
			t.Errorf("%d left after a reset and %d calls around it: permits are gone that nobody used", left, used.Load())
		}
	})
}

// What the store behind wants to be given back, of a call over several shards, is given back here:
// a refusal that it makes untrue is not repeated, and a Reset stops it.
func TestGivenBackBehind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		behind := newShared(t, 100)
		behind.beforeBack = func() { time.Sleep(time.Millisecond) }
		s, c := newProcess(t, behind), counter("user:a", windowed(algorithm.SlidingWindow, 1, hour), 1)
		v := mustTake(t, s, c)
		mustRefuse(t, s, algorithm.FromStore, c)
		mustRefuse(t, s, algorithm.FromRefusal, c)
		charges := []algorithm.Charge{c.Charged(&v)}
		behind.giveBack(charges)
		behind.Close() // waits for it
		mustTake(t, s, c)
		behind.giveBack(charges)
		_ = s.Reset(context.Background(), c.Key)
		mustTake(t, s, c)
		time.Sleep(time.Minute)
		mustRefuse(t, s, algorithm.FromStore, c)
	})
}

// A refusal that was asked before a call of another cost passed, and answered after, is not repeated: the wait is longer since.
func TestRefusalOvertakenByACharge(t *testing.T) {
	for _, limit := range []*algorithm.Limit{windowed(algorithm.SlidingWindow, 4, 2*second), windowed(algorithm.FixedWindow, 4, 2*second)} {
		behind := newShared(t, 100)
		s := newProcess(t, behind)
		mustTake(t, s, leased("user:a", limit, 2, 0))
		large, small := leased("user:a", limit, 3, 0), leased("user:a", limit, 2, 0)
		behind.after = func() {
			behind.after = nil
			mustTake(t, s, small)
		}
		if v := ask(s, large)[0]; v.RetryAfter == 0 {
			t.Fatalf("%+v", v)
		}
		if v := ask(s, large)[0]; v.From != algorithm.FromStore || v.Remaining != 0 {
			t.Errorf("%+v, want what the store says now", v)
		}
	}
}
