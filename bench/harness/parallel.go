package harness

import (
	"runtime"
	"sync"
	"sync/atomic"
	"time"
)

// batch is the number of calls between two checks for the end.
const batch = 64

// RunParallel runs one goroutine per core for the duration measure, after a warm-up of a quarter of
// that. It is for calls that are too short to be timed one by one. Each goroutine has its own
// caller, a function that makes the given number of calls.
func RunParallel(newCaller func(goroutine int) func(calls int), measure time.Duration) *Outcome {
	var phase atomic.Int32
	var calls atomic.Int64
	var all sync.WaitGroup
	for g := range runtime.GOMAXPROCS(0) {
		call := newCaller(g)
		all.Go(func() {
			var n int64
			for phase.Load() != ended {
				call(batch)
				if phase.Load() == measuring {
					n += batch
				}
			}
			calls.Add(n)
		})
	}
	time.Sleep(measure / 4)
	o := new(Outcome)
	_ = o.during(nil, func() error { // without a server there is no error
		phase.Store(measuring)
		time.Sleep(measure)
		phase.Store(ended)
		return nil
	})
	all.Wait()
	o.Decisions = calls.Load()
	return o
}

// HeapOf returns how many bytes fill adds to the live heap. The result of fill is
// kept alive until then.
func HeapOf(fill func() (alive any)) int64 {
	before := liveHeap()
	alive := fill()
	after := liveHeap()
	runtime.KeepAlive(alive)
	return after - before
}

func liveHeap() int64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC() // a pool keeps its contents for one more collection
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
