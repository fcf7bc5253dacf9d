package harness

import (
	"runtime"
	"sync"
	"sync/atomic"
	"time"
)

// Parallel is the result of a run on all cores, for work too short to be timed call by call.
type Parallel struct {
	Calls   int64
	Took    time.Duration
	CPU     time.Duration // of all cores
	Mallocs uint64
	Bytes   uint64
}

// batch is the number of calls between two checks whether to stop.
const batch = 64

// RunParallel runs one goroutine for each core, for the time measure, after a quarter of that as a
// warm-up. Each goroutine has a caller of its own, which is given the number of calls to make.
func RunParallel(newCaller func(goroutine int) func(calls int), measure time.Duration) Parallel {
	cores := runtime.GOMAXPROCS(0)
	counts := make([]int64, cores)
	var phase atomic.Int32
	var all sync.WaitGroup
	for g := range cores {
		call := newCaller(g)
		all.Go(func() {
			var n int64
			for {
				call(batch)
				switch phase.Load() {
				case ended:
					counts[g] = n
					return
				case measuring:
					n += batch
				}
			}
		})
	}
	time.Sleep(measure / 4)
	before, _ := readings(nil)
	began := time.Now()
	phase.Store(measuring)
	time.Sleep(measure)
	phase.Store(ended)
	p := Parallel{Took: time.Since(began)}
	after, _ := readings(nil)
	all.Wait()
	for _, n := range counts {
		p.Calls += n
	}
	p.CPU = after.cpu - before.cpu
	p.Mallocs, p.Bytes = after.memory.Mallocs-before.memory.Mallocs, after.memory.TotalAlloc-before.memory.TotalAlloc
	return p
}

// NanosPerCall returns the time that passed for each call, all cores together.
func (p Parallel) NanosPerCall() float64 { return float64(p.Took.Nanoseconds()) / float64(p.Calls) }

// CPUNanosPerCall returns the processor time of each call.
func (p Parallel) CPUNanosPerCall() float64 { return float64(p.CPU.Nanoseconds()) / float64(p.Calls) }

// AllocsPerCall returns the number of allocations per call.
func (p Parallel) AllocsPerCall() float64 { return float64(p.Mallocs) / float64(p.Calls) }

// BytesPerCall returns the bytes allocated per call.
func (p Parallel) BytesPerCall() float64 { return float64(p.Bytes) / float64(p.Calls) }

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
