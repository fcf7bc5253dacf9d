package harness

import (
	"runtime"
	"sync"
	"sync/atomic"
	"time"
)

// batch is the number of calls between two checks whether to stop.
const batch = 64

// RunParallel runs one goroutine for each core, for the time measure, after a quarter of that as a
// warm-up. It is for work that is too short to be timed call by call. Each goroutine has a caller of
// its own, which is given the number of calls to make.
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

// HeapOf returns the number of bytes by which fill makes the live heap grow. The result of fill is
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
