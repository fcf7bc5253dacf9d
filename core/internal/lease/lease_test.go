package lease_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/accesslimit/accesslimit/core/internal/algorithm"
	. "github.com/accesslimit/accesslimit/core/internal/localfirst/localtest"
	"github.com/accesslimit/accesslimit/internal/leakcheck"
)

func TestMain(m *testing.M) { leakcheck.Main(m) }

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
	free := Leased("user:a", limit, 0, 100)
	for name, counters := range map[string][]algorithm.Counter{
		"not leased":      {Counter("user:a", limit, 1)},
		"another limit":   {Leased("user:a", Windowed(algorithm.SlidingWindow, 20_000, Hour), 1, 100)},
		"another counter": {Leased("user:a", limit, 1, 100), Counter("user:b", limit, 1)},
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
	p.Do(context.Background(), algorithm.NewOp(algorithm.Looks, Leased("user:a", limit, 1, 100)))
	shared.WantAsked(t, 1)
}
