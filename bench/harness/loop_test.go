package harness

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// Each answer is counted once, and none is counted during the warm-up.
func TestLoopCounts(t *testing.T) { synctest.Test(t, loopCounts) }

func loopCounts(t *testing.T) {
	var calls atomic.Int64
	broken := errors.New("broken")
	allow := func(context.Context, string) (bool, error) {
		time.Sleep(100 * time.Microsecond)
		switch calls.Add(1) % 4 {
		case 0:
			return false, broken
		case 1:
			return false, nil
		default:
			return true, nil
		}
	}
	load := Load{
		Goroutines: 4, Keys: NewKeys("key", 8), Picks: []uint32{0, 1, 2, 3, 4, 5, 6, 7},
		Warm: 20 * time.Millisecond, Measure: 50 * time.Millisecond, Every: 1,
	}
	o, err := Loop(allow, load, nil)
	if err != nil {
		t.Fatal(err)
	}
	if o.Decisions == 0 || o.Decisions >= calls.Load() {
		t.Errorf("%d of %d calls were measured: none, or the warm-up too", o.Decisions, calls.Load())
	}
	near := func(what string, got, want int64) {
		if got < want-4 || got > want+4 {
			t.Errorf("%s: %d of %d, want %d", what, got, o.Decisions, want)
		}
	}
	near("errors", o.Errors, o.Decisions/4)
	near("allowed", o.Allowed, o.Decisions/2)
	near("admitted ever", o.Ever, calls.Load()/2)
	if p := time.Duration(o.Latency.ValueAtPercentile(50)); p < 99*time.Microsecond || p > 101*time.Microsecond {
		t.Errorf("the median of sleeps of 100 µs is %v", p)
	}
}

// If each goroutine makes only one call, the loop times one call in eight.
func TestFirstCallsOfSomeGoroutinesAreTimed(t *testing.T) {
	r := &run{Load: Load{Goroutines: 16, Keys: NewKeys("key", 1), Picks: One(), Every: 8}}
	timed := NewLatency()
	for i := range r.Goroutines {
		calls := 0
		r.allow = func(context.Context, string) (bool, error) {
			if calls++; calls == 2 {
				r.phase.Store(ended)
			}
			return true, nil
		}
		r.phase.Store(measuring)
		c := r.caller(i)
		c.work()
		timed.Merge(c.latency)
	}
	if n := timed.TotalCount(); n != 2 {
		t.Errorf("%d of 16 first calls are timed, want 2", n)
	}
}

// The loop itself must not allocate, or limiters would be charged with it.
func TestLoopAllocatesNothing(t *testing.T) { synctest.Test(t, loopAllocatesNothing) }

func loopAllocatesNothing(t *testing.T) {
	allow := func(context.Context, string) (bool, error) {
		time.Sleep(10 * time.Microsecond)
		return true, nil
	}
	load := Load{
		Goroutines: 2, Keys: NewKeys("key", 4), Picks: []uint32{0, 1, 2, 3},
		Warm: 10 * time.Millisecond, Measure: 30 * time.Millisecond, Every: 1,
	}
	o, err := Loop(allow, load, nil)
	if err != nil {
		t.Fatal(err)
	}
	if o.Decisions < 1000 || o.Mallocs > uint64(o.Decisions)/100 {
		t.Errorf("%d allocations in %d calls", o.Mallocs, o.Decisions)
	}
}

func TestRunParallelCountsCalls(t *testing.T) { synctest.Test(t, runParallelCountsCalls) }

func runParallelCountsCalls(t *testing.T) {
	var calls atomic.Int64
	p := RunParallel(func(int) func(int) {
		return func(n int) {
			time.Sleep(time.Millisecond)
			calls.Add(int64(n))
		}
	}, 40*time.Millisecond)
	if p.Decisions == 0 || p.Decisions > calls.Load() || p.Decisions%batch != 0 {
		t.Errorf("%d of %d calls were measured", p.Decisions, calls.Load())
	}
}

func TestHeapOf(t *testing.T) {
	if got := HeapOf(func() any { return make([]byte, 4<<20) }); got < 4<<20 || got > 5<<20 {
		t.Errorf("4 MiB weigh %d", got)
	}
}
