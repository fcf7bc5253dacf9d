package lease_test

import (
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/accesslimit/accesslimit/core/internal/algorithm"
	. "github.com/accesslimit/accesslimit/core/internal/localfirst/localtest"
)

// A Reset drops what is leased. Then all of the limit is there again, and no more than that, also
// when a fetch is under way.
func TestResetDropsLeases(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		shared := NewShared(t, 100)
		p, c := NewProcess(t, shared), Leased("user:a", Windowed(algorithm.SlidingWindow, 100, Hour), 1, 50)
		for range 40 {
			p.MustTake(t, c)
		}
		p.MustReset(t, c)
		shared.AfterDecide = func() { time.Sleep(time.Millisecond) }
		var waits sync.WaitGroup
		waits.Go(func() { p.MustTake(t, c) }) // charged before the Reset, and answered after it
		synctest.Wait()
		p.MustReset(t, c)
		waits.Wait()
		shared.AfterDecide = nil
		for i := range int64(100) {
			if v := p.MustTake(t, c); v.Remaining != 99-i {
				t.Fatalf("call %d after a Reset: %+v", i, v)
			}
		}
		p.MustRefuse(t, algorithm.FromStore, c)
		p.MustRefuse(t, algorithm.FromRefusal, c)
	})
}

// Permits that were leased before a Reset are neither given back after it nor used: they would be
// others' permits.
func TestNothingLeasedOutlivesAReset(t *testing.T) {
	const most = 640
	for name, reset := range map[string]func(t *testing.T, s *slowReturns, p Process, c algorithm.Counter){
		"while it is given back": func(t *testing.T, s *slowReturns, p Process, c algorithm.Counter) {
			<-s.begun // when the lease is a second old
			p.MustReset(t, c)
		},
		"before it is given back": func(t *testing.T, s *slowReturns, p Process, c algorithm.Counter) {
			// So that nothing of the fetch can be used later.
			s.AfterDecide = func() { time.Sleep(1100 * time.Millisecond) }
			for s.Asked.Store(0); s.Asked.Load() == 0; {
				p.MustTake(t, c)
			}
			s.AfterDecide = nil
			p.MustReset(t, c)
		},
		"that is under way": func(t *testing.T, s *slowReturns, p Process, c algorithm.Counter) {
			s.BeforeReset = func() { time.Sleep(10 * time.Millisecond) }
			go p.MustReset(t, c)
			synctest.Wait()
			for range 50 {
				p.MustTake(t, c)
			}
			time.Sleep(20 * time.Millisecond)
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				shared := newSlowReturns(t)
				p, c := NewProcess(t, shared), Leased("user:a", Windowed(algorithm.SlidingWindow, most, Hour), 1, 100)
				for range 50 {
					p.MustTake(t, c)
				}
				if got := shared.Left(c); got >= most-50 {
					t.Fatalf("%d left: nothing is leased", got)
				}
				reset(t, shared, p, c)
				passed := 0
				for range 2 {
					for p.Ask(c)[0].RetryAfter == 0 {
						passed++
					}
					// Until all is given back, and the refusal is forgotten.
					time.Sleep(1100 * time.Millisecond)
				}
				if passed != most {
					t.Errorf("%d calls passed after a Reset of a limit of %d", passed, most)
				}
			})
		})
	}
}

// slowReturns gives charges back slowly, and signals when it begins.
type slowReturns struct {
	*Shared
	begun chan struct{}
}

func newSlowReturns(t *testing.T) *slowReturns {
	s := &slowReturns{NewShared(t, 100), make(chan struct{}, 100)}
	s.BeforeGiveBack = func() {
		s.begun <- struct{}{}
		time.Sleep(10 * time.Millisecond)
	}
	return s
}

// A Reset waits for a fetch that is under way. Otherwise permits would be charged after it that
// nobody uses.
func TestResetWaitsForTheFetch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		shared := NewShared(t, 100)
		p, c := NewProcess(t, shared), Leased("user:a", Windowed(algorithm.SlidingWindow, 3200, 24*Hour), 1, 100)
		for range 300 {
			p.MustTake(t, c)
		}
		shared.BeforeDecide = func() { time.Sleep(10 * time.Millisecond) }
		var all sync.WaitGroup
		used := atomic.Int64{}
		for range 200 { // more than are here, so that a fetch begins
			all.Go(func() {
				if v := p.Ask(c)[0]; v.RetryAfter == 0 && v.Err == nil {
					used.Add(1)
				}
			})
		}
		time.Sleep(time.Millisecond)
		p.MustReset(t, c)
		all.Wait()
		shared.BeforeDecide = nil
		p.Close()
		if left := shared.Left(c); left < 3200-used.Load() {
			t.Errorf("%d left after a Reset and %d calls around it: permits are gone that nobody used", left, used.Load())
		}
	})
}

// If a shard refuses a call, the shared store lets this process give back the charges of other
// shards. So a refusal that no longer holds is not repeated, and a Reset stops it.
func TestGiveBackSoon(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		shared := NewShared(t, 100)
		shared.BeforeGiveBack = func() { time.Sleep(time.Millisecond) }
		p, c := NewProcess(t, shared), Counter("user:a", Windowed(algorithm.SlidingWindow, 1, Hour), 1)
		v := p.MustTake(t, c)
		p.MustRefuse(t, algorithm.FromStore, c)
		p.MustRefuse(t, algorithm.FromRefusal, c)
		charges := []algorithm.Charge{c.Charged(&v)}
		shared.GiveBackSoon(charges)
		shared.Close() // waits for it
		p.MustTake(t, c)
		shared.GiveBackSoon(charges)
		p.MustReset(t, c)
		p.MustTake(t, c)
		time.Sleep(time.Minute)
		p.MustRefuse(t, algorithm.FromStore, c)
	})
}
