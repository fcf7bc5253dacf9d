package lease_test

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
	. "github.com/accesslimit/accesslimit/core/internal/localfirst/localtest"
	"github.com/accesslimit/accesslimit/core/internal/memstore"
)

// A busy key soon takes many permits in one fetch. Every permit has the number that is left after
// it.
func TestManyPermitsInOneFetch(t *testing.T) {
	for _, kind := range []algorithm.Kind{algorithm.SlidingWindow, algorithm.FixedWindow} {
		t.Run(kind.Tag(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				shared := NewShared(t, 100)
				p, c := NewProcess(t, shared), Leased("user:a", Windowed(kind, 100_000, Minute), 2, 1000)
				for i := range int64(20_000) {
					v := p.MustTake(t, c)
					if want := 100_000 - 2*(i+1); v.Remaining != want || v.ResetAfter <= 0 || v.ResetAfter > Minute+Minute/32 {
						t.Fatalf("call %d: %+v, want %d left", i, v, want)
					}
				}
				if fetches := shared.Asked.Load(); fetches > 30 {
					t.Errorf("%d fetches for 20,000 calls, of which one may bring 1000", fetches)
				}
				p.Close()
				if got := shared.Left(c); got != 60_000 {
					t.Errorf("%d left when all that is not used is given back, want 60,000", got)
				}
			})
		})
	}
}

// Permits that are not used are given back when the lease ends, although nobody calls, and then
// nothing keeps running.
func TestUnusedPermitsAreGivenBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		shared := NewShared(t, 100)
		p, c := NewProcess(t, shared), Leased("user:a", Windowed(algorithm.SlidingWindow, 10_000, Second), 1, 1000)
		for range 100 {
			p.MustTake(t, c)
		}
		if got := shared.Left(c); got >= 9900 {
			t.Fatalf("%d left: nothing is leased", got)
		}
		const moreThanASubWindow = 40 * time.Millisecond
		time.Sleep(moreThanASubWindow)
		if got := shared.Left(c); got != 9900 {
			t.Errorf("%d left after the lease, want 9900", got)
		}
		for _, want := range []int64{2 * 36, 2, 2} { // twice the use of the last lease
			p.MustTake(t, c)
			if got := shared.LeasedCalls.Load(); got != want {
				t.Errorf("%d calls were asked for, want %d", got, want)
			}
			time.Sleep(moreThanASubWindow)
		}
		time.Sleep(2 * time.Second)
		for _, want := range []int64{0, 1} { // for a key that was not used, nothing is leased, and then one permit
			shared.LeasedCalls.Store(0)
			p.MustTake(t, c)
			if got := shared.LeasedCalls.Load(); got != want || shared.Left(c) != 9999-want {
				t.Errorf("%d calls were asked for, want %d, and %d are left", got, want, shared.Left(c))
			}
		}
	})
}

// A permit is never used in another sub-window than its own, nor after a second.
func TestALeaseEnds(t *testing.T) {
	const restOfWindow = 20 * time.Millisecond
	for name, test := range map[string]struct {
		limit *algorithm.Limit
		life  time.Duration
	}{
		"with its sub-window":         {Windowed(algorithm.SlidingWindow, 10_000, 16*Second), Second / 2 * time.Microsecond},
		"after a second":              {Windowed(algorithm.SlidingWindow, 10_000, 320*Second), time.Second},
		"after Window/32":             {Windowed(algorithm.FixedWindow, 10_000, 16*Second), Second / 2 * time.Microsecond},
		"with its window, which ends": {Windowed(algorithm.FixedWindow, 10_000, Second), restOfWindow},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				shared := NewShared(t, 100)
				p, c := NewProcess(t, shared), Leased("user:a", test.limit, 1, 1000)
				if test.life == restOfWindow { // of a window that began before
					p.MustTake(t, Counter("user:a", test.limit, 1))
					time.Sleep(time.Second - test.life)
				}
				for range 10 { // 1, 2, 4 and 8 were leased
					p.MustTake(t, c)
				}
				time.Sleep(test.life - 2*time.Microsecond)
				if v := p.MustTake(t, c); v.From != algorithm.FromLease {
					t.Errorf("%+v at the end of the lease", v)
				}
				time.Sleep(2 * time.Microsecond)
				shared.Asked.Store(0)
				if v := p.MustTake(t, c); v.From != algorithm.FromStore {
					t.Errorf("%+v after the lease", v)
				}
				shared.WantAsked(t, 1)
			})
		})
	}
}

// Callers who come at once share one fetch, which asks for all of them, however few may be taken
// ahead. So each is charged once, and nobody waits for fetch after fetch.
func TestCallersShareAFetch(t *testing.T) {
	for _, ahead := range []int64{1, 2, 50} {
		t.Run(fmt.Sprint(ahead), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { callersShareAFetch(t, ahead) })
		})
	}
}

func callersShareAFetch(t *testing.T, ahead int64) {
	shared := NewShared(t, 100)
	shared.BeforeDecide = func() { time.Sleep(time.Millisecond) }
	p, c := NewProcess(t, shared), Leased("user:a", Windowed(algorithm.SlidingWindow, 500, Hour), 1, ahead)
	var admitted, refused, asked atomic.Int64
	var all sync.WaitGroup
	for range 100 {
		all.Go(func() {
			for range 8 {
				switch v := p.Ask(c)[0]; {
				case v.Err != nil || v.Ended != nil:
					t.Errorf("%+v", v)
				case v.RetryAfter > 0:
					refused.Add(1)
				default:
					admitted.Add(1)
				}
				if asked.Add(1) == 100 && shared.Asked.Load() > 4 || shared.LeasedCalls.Load() > 100 {
					t.Errorf("%d fetches for 100 callers, the last for %d", shared.Asked.Load(), shared.LeasedCalls.Load())
				}
			}
		})
	}
	all.Wait()
	p.Close()
	if admitted.Load() != 500 || refused.Load() != 300 || shared.Left(c) != 0 {
		t.Errorf("%d admitted and %d refused, with %d left", admitted.Load(), refused.Load(), shared.Left(c))
	}
}

// Permits of two sub-windows are not merged. Each is given back to the sub-window in which it was
// charged, even if the store's clock jumps.
func TestPermitsOfTwoSubWindows(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const most, window = 6400, 320 * Second
		var ahead int64
		shared := NewShared(t, 100)
		shared.Store = memstore.New(100, func() int64 { return time.Now().UnixMicro() + ahead })
		p, limit := NewProcess(t, shared), Windowed(algorithm.SlidingWindow, most, window)
		used := int64(0)
		for shared.LeasedCalls.Load() < 64 {
			p.MustTake(t, Leased("user:a", limit, 1, 100))
			used++
		}
		ahead = window / 32
		p.MustTake(t, Leased("user:a", limit, 80, 100))
		used += 80
		p.Close()
		if got := shared.Left(Counter("user:a", limit, 1)); got != most-used {
			t.Errorf("%d left after %d permits, want %d", got, used, most-used)
		}
		ahead += window // when all that was used in the first sub-window is back, and in the second is not
		if got := shared.Left(Counter("user:a", limit, 1)); got != most-80 {
			t.Errorf("%d left a window later, want %d", got, most-80)
		}
	})
}

// A caller who comes when a fetch has passed the end of its sub-window gets no permit of it,
// because the permit would be used in another sub-window than its own.
func TestACallerTooLateForAFetch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		shared := NewShared(t, 100)
		p, c := NewProcess(t, shared), Leased("user:a", Windowed(algorithm.SlidingWindow, 3200, 320_000), 1, 50)
		for range 20 {
			p.MustTake(t, c)
		}
		time.Sleep(29 * time.Millisecond) // a millisecond before the end of a sub-window
		shared.AfterDecide = func() { time.Sleep(5 * time.Millisecond) }
		var early sync.WaitGroup
		early.Go(func() { p.MustTake(t, c) })
		time.Sleep(2 * time.Millisecond)
		asked := time.Now().UnixMicro()
		if v := p.MustTake(t, c); v.At < asked {
			t.Errorf("charged %d µs before it was asked for, in another sub-window", asked-v.At)
		}
		early.Wait()
	})
}

// A caller who leaves before the fetch has come back gets the context's error, on time. The permit
// is not lost, and the other callers get theirs.
func TestACallerLeavesAFetch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		shared := NewShared(t, 100)
		p, c := NewProcess(t, shared), Leased("user:a", Windowed(algorithm.SlidingWindow, 501, Hour), 1, 50)
		p.MustTake(t, c) // the first call of a key is no fetch
		shared.BeforeDecide = func() { time.Sleep(10 * time.Millisecond) }
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Millisecond)
		defer cancel()
		begin := time.Now()
		var stays sync.WaitGroup
		verdict := make([]algorithm.Verdict, 1)
		go func() {
			time.Sleep(time.Millisecond)
			stays.Go(func() { p.MustTake(t, c) })
		}()
		p.Decide(ctx, []algorithm.Counter{c}, true, verdict)
		v, passed := verdict[0], time.Since(begin)
		if passed != 5*time.Millisecond || !errors.Is(v.Ended, context.DeadlineExceeded) || v.Err != nil {
			t.Errorf("after %v: %+v", passed, v)
		}
		stays.Wait()
		shared.BeforeDecide = nil
		shared.Asked.Store(0)
		p.Decide(ctx, []algorithm.Counter{c}, true, verdict) // the call of a caller who has left is not sent
		if v := verdict[0]; !errors.Is(v.Ended, context.DeadlineExceeded) && v.From != algorithm.FromLease {
			t.Errorf("%+v", v)
		}
		shared.WantAsked(t, 0)
		p.Close()
		if got := shared.Left(c); got < 498 || got > 499 {
			t.Errorf("%d left of 500 after one or two calls", got)
		}
	})
}

// A fetch that fails is a failure for all who wait for it, and one that hangs is a failure within
// the timeout.
func TestAFetchFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		shared := NewShared(t, 100)
		p, c := NewProcess(t, shared), Leased("user:a", Windowed(algorithm.SlidingWindow, 500, Hour), 1, 50)
		p.MustTake(t, c) // the first call of a key is no fetch
		shared.BeforeDecide = func() { time.Sleep(Patient + time.Second) }
		begin := time.Now()
		var all sync.WaitGroup
		for range 5 {
			all.Go(func() {
				if v := p.Ask(c)[0]; v.Err == nil || v.Ended != nil || time.Since(begin) != Patient {
					t.Errorf("after %v: %+v", time.Since(begin), v)
				}
			})
		}
		all.Wait()
		time.Sleep(2 * time.Second) // the fetch has come back, and what it brought has expired
		synctest.Wait()
		shared.BeforeDecide = nil
		shared.Down.Store(true)
		if v := p.Ask(c)[0]; v.Err == nil {
			t.Errorf("%+v of a store that is down", v)
		}
		shared.Down.Store(false)
		p.MustTake(t, c)
	})
}

// A small limit loses nothing to idle leases: two processes together get all of it.
func TestLeasesLeaveNothingOfASmallLimitIdle(t *testing.T) {
	shared := NewShared(t, 100)
	c := Leased("user:a", Windowed(algorithm.SlidingWindow, 5, Hour), 1, 5)
	one, other := NewProcess(t, shared), NewProcess(t, shared)
	for i := range 5 {
		one.MustTake(t, c)
		if i < 4 {
			one, other = other, one
		}
	}
	one.MustRefuse(t, algorithm.FromStore, c)
	other.MustRefuse(t, algorithm.FromStore, c)
}

// No more permits are idle than a sub-window's share of the limit, nor than are left for others,
// however many costs callers choose.
func TestLeasesLeaveSomeForOthers(t *testing.T) {
	for _, costs := range []int64{1, 10} {
		t.Run(fmt.Sprint(costs, " costs"), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				const most = 32_000
				shared := NewShared(t, 100)
				p, limit := NewProcess(t, shared), Windowed(algorithm.SlidingWindow, most, Hour)
				for used, i := int64(0), int64(0); used < most; i++ {
					cost := min(1+i/7%costs, most-used)
					p.MustTake(t, Leased("user:a", limit, cost, 3200))
					used += cost
					others := shared.Left(Counter("user:a", limit, 1))
					if idle := most - used - others; idle < 0 || idle > most/32+2*costs || idle > others+2*costs {
						t.Fatalf("after %d permits %d are idle, and others have %d", used, idle, others)
					}
				}
				p.MustRefuse(t, algorithm.FromStore, Leased("user:a", limit, 1, 3200))
			})
		})
	}
}

// A call that costs more than the lease holds gets the rest from the store. If that has less, the
// call asks alone.
func TestALeaseForManyCosts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		shared := NewShared(t, 100)
		p, limit := NewProcess(t, shared), Windowed(algorithm.SlidingWindow, 640, Hour)
		take := func(cost int64) algorithm.Verdict { return p.MustTake(t, Leased("user:a", limit, cost, 100)) }
		for range 40 {
			take(1)
		}
		if idle := 600 - shared.Left(Counter("user:a", limit, 1)); idle < 1 {
			t.Fatalf("%d permits are leased", idle)
		}
		if v := take(600 - 3); v.Remaining != 3 {
			t.Errorf("%+v, want 3 left", v)
		}
		if v := p.MustRefuse(t, algorithm.FromStore, Leased("user:a", limit, 5, 100)); v.RetryAfter < Hour/2 {
			t.Errorf("%+v", v)
		}
		take(2)
		if v := take(1); v.Remaining != 0 {
			t.Errorf("%+v, want nothing left", v)
		}
		if v := p.Ask(Leased("user:a", limit, 1, 100))[0]; v.RetryAfter == 0 {
			t.Errorf("%+v of a limit that is used up", v)
		}
	})
}

// However many keys are leased, a bounded number of leases is held. Calls of the other keys ask
// each time, and Close gives everything back.
func TestLeasesAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		shared := NewShared(t, 100_000)
		p, limit := NewProcess(t, shared), Windowed(algorithm.SlidingWindow, 1000, Hour)
		const keys, each = 6000, 5
		for i := range keys {
			for range each {
				p.MustTake(t, Leased(fmt.Sprint("user:", i), limit, 1, 100))
			}
		}
		held := 0
		for i := range keys {
			if shared.Left(Counter(fmt.Sprint("user:", i), limit, 1)) < 1000-each {
				held++
			}
		}
		if held > 4096 || held < 3000 {
			t.Errorf("%d leases are held", held)
		}
		p.Close()
		for i := range keys {
			if got := shared.Left(Counter(fmt.Sprint("user:", i), limit, 1)); got != 1000-each {
				t.Fatalf("key %d has %d left, want %d", i, got, 1000-each)
			}
		}
		for range 10 { // counting goes on
			p.MustTake(t, Leased("user:0", limit, 1, 100))
		}
		if got := shared.Left(Counter("user:0", limit, 1)); got != 1000-each-10 {
			t.Errorf("%d left: a lease was taken after the store was closed", got)
		}
	})
}

// Permits that a fetch brings after the store was closed are given back.
func TestCloseDuringAFetch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const most = 6400
		shared := NewShared(t, 100)
		p, c := NewProcess(t, shared), Leased("user:a", Windowed(algorithm.SlidingWindow, most, Hour), 1, 100)
		used := int64(0)
		take := func() {
			p.MustTake(t, c)
			used++
		}
		for shared.LeasedCalls.Load() < 64 { // until fetches bring more than the caller needs
			take()
		}
		shared.AfterDecide = func() {
			go p.Close()
			time.Sleep(time.Millisecond)
		}
		for shared.Asked.Store(0); shared.Asked.Load() == 0; {
			take()
		}
		synctest.Wait()
		if got := shared.Left(c); got != most-used {
			t.Errorf("%d left after %d calls, want %d", got, used, most-used)
		}
	})
}

// For keys that are called less than once in a second, nothing is fetched.
func TestRareKeysAreNotLeased(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		shared := NewShared(t, 100_000)
		p, limit := NewProcess(t, shared), Windowed(algorithm.SlidingWindow, 1000, Hour)
		for range 3 {
			for i := range 1000 {
				p.MustTake(t, Leased(fmt.Sprint("user:", i), limit, 1, 100))
			}
			time.Sleep(time.Second)
		}
		if got := shared.LeasedCalls.Load(); got != 0 {
			t.Errorf("a fetch asked for %d calls", got)
		}
	})
}

// A lease is for a call of one counter and limit, with one of two algorithms.
func TestCallsThatTakeNoLease(t *testing.T) {
	shared := NewShared(t, 100)
	p, limit := NewProcess(t, shared), Windowed(algorithm.SlidingWindow, 10_000, Hour)
	for range 50 {
		p.MustTake(t, Leased("user:a", limit, 1, 100))
	}
	dry, free := Leased("user:a", limit, 1, 100), Leased("user:a", limit, 0, 100)
	dry.Lenient = true
	for name, counters := range map[string][]algorithm.Counter{
		"not leased":      {Counter("user:a", limit, 1)},
		"another limit":   {Leased("user:a", Windowed(algorithm.SlidingWindow, 20_000, Hour), 1, 100)},
		"another counter": {Leased("user:a", limit, 1, 100), Counter("user:b", limit, 1)},
		"in DryRun":       {dry},
		"costs nothing":   {free},
		"a bucket":        {Leased("bucket", Bucket(t, 10_000, Hour, 10_000), 1, 100)},
		"a log":           {Leased("log", Windowed(algorithm.SlidingLog, 10_000, Hour), 1, 100)},
		"a calendar":      {Leased("calendar", Windowed(algorithm.CalendarWindow, 10_000, Hour), 1, 100)},
	} {
		shared.Asked.Store(0)
		if v := p.MustTake(t, counters...); v.From != algorithm.FromStore {
			t.Errorf("%s: %+v", name, v)
		}
		shared.WantAsked(t, 1)
	}
	p.Decide(context.Background(), []algorithm.Counter{Leased("user:a", limit, 1, 100)}, false, make([]algorithm.Verdict, 1))
	shared.WantAsked(t, 1)
}

// With many goroutines of two processes, and resets of another key, every permit is used once or
// given back.
func TestLeasesUnderLoad(t *testing.T) {
	shared := NewShared(t, 100)
	limit := Windowed(algorithm.FixedWindow, 1_000_000, Hour)
	one, other := NewProcess(t, shared), NewProcess(t, shared)
	var used [4]atomic.Int64
	var all sync.WaitGroup
	for i := range 16 {
		p, c := one, Leased(fmt.Sprint("user:", i%4), limit, 1+int64(i%4), 500)
		if i >= 8 {
			p = other
		}
		all.Go(func() {
			for range 5000 {
				if v := p.Ask(c)[0]; v.RetryAfter == 0 && v.Err == nil && v.Ended == nil {
					used[i%4].Add(c.Cost)
				}
			}
		})
		all.Go(func() {
			for range 20 {
				_, _ = p.Reset(context.Background(), []byte("test:{nobody}"))
			}
		})
	}
	all.Wait()
	one.Close()
	other.Close()
	for i := range used {
		left := shared.Left(Counter(fmt.Sprint("user:", i), limit, 1))
		if left != 1_000_000-used[i].Load() || used[i].Load() != 4*5000*int64(1+i) {
			t.Errorf("key %d has %d left, and %d were used", i, left, used[i].Load())
		}
	}
}
