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
	var admitted, refused atomic.Int64
	ask := func(times int) {
		var all sync.WaitGroup
		for range 100 {
			all.Go(func() {
				for range times {
					switch v := p.Ask(c)[0]; {
					case v.Err != nil || v.Ended != nil:
						t.Errorf("%+v", v)
					case v.RetryAfter > 0:
						refused.Add(1)
					default:
						admitted.Add(1)
					}
					if n := shared.LeasedCalls.Load(); n > 100 {
						t.Errorf("a fetch for %d of 100 callers", n)
					}
				}
			})
		}
		all.Wait()
	}
	ask(1)
	if n := shared.Asked.Load(); n > 4 {
		t.Errorf("%d fetches for 100 callers", n)
	}
	ask(7)
	p.Close()
	if admitted.Load() != 500 || refused.Load() != 300 || shared.Left(c) != 0 {
		t.Errorf("%d admitted and %d refused, with %d left", admitted.Load(), refused.Load(), shared.Left(c))
	}
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
		go func() {
			time.Sleep(time.Millisecond)
			stays.Go(func() { p.MustTake(t, c) })
		}()
		v, passed := p.Do(ctx, algorithm.NewOp(algorithm.AllOrNone, c))[0], time.Since(begin)
		if passed != 5*time.Millisecond || !errors.Is(v.Ended, context.DeadlineExceeded) || v.Err != nil {
			t.Errorf("after %v: %+v", passed, v)
		}
		stays.Wait()
		shared.BeforeDecide = nil
		shared.Asked.Store(0)
		// The call of a caller who has left is not sent.
		if v := p.Do(ctx, algorithm.NewOp(algorithm.AllOrNone, c))[0]; !errors.Is(v.Ended, context.DeadlineExceeded) && v.From != algorithm.FromLease {
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
