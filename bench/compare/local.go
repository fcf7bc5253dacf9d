package main

import (
	"runtime"
	"sync/atomic"
	"time"

	"github.com/accesslimit/accesslimit/bench/harness"
	"github.com/accesslimit/accesslimit/bench/rivals"
)

// The workloads of limiters in this process, called from all cores.
const (
	oneKey  = "in process, one key"
	allKeys = "in process, 100k keys"
)

// inThisProcess measures the limiters that count in the process. The first call on each key passes
// a separate copy of the key's text, as in a service. Comparing a string with itself is cheaper:
// with one shared copy, go-limiter needs only 0.75 to 0.8 of this time on 100,000 keys.
func (b *bench) inThisProcess() error {
	for workload, n := range map[string]int{oneKey: 1, allKeys: b.keys} {
		first, keys, picks := harness.NewKeys("key", n), harness.NewKeys("key", n), harness.One()
		if n > 1 {
			picks = harness.Uniform(n)
		}
		for range b.localRounds {
			for _, i := range harness.Shuffled(len(rivals.InThisProcess)) {
				r := rivals.InThisProcess[i]
				b.add(cell{workload: workload, rival: r.Name}, b.runInProcess(r, first, keys, picks))
			}
		}
	}
	return nil
}

func (b *bench) runInProcess(r rivals.InProcess, first, keys harness.Keys, picks []uint32) *harness.Outcome {
	limit := rivals.Roomy
	if keys.Len() == 1 {
		limit = rivals.RoomyHot
	}
	allow, closeIt := r.Open(limit, keys.Len())
	defer closeIt()
	for i := range first.Len() {
		allow(first.At(i))
	}
	runtime.GC() // frees the last limiter
	var refused atomic.Int64
	o := harness.RunParallel(func(goroutine int) func(int) {
		next, mask := goroutine*len(picks)/2, len(picks)-1
		return func(calls int) {
			no, at := 0, next // its own copy: next may share a cache line with another goroutine's
			for range calls {
				if !allow(keys.At(int(picks[at&mask]))) {
					no++
				}
				at++
			}
			next = at
			if no > 0 {
				refused.Add(int64(no))
			}
		}
	}, b.inProcess)
	o.Errors = min(refused.Load(), o.Decisions) // some were in the warm-up
	return o
}

// middlewares measures handlers with and without limits, called from all cores.
func (b *bench) middlewares() error {
	for range b.localRounds {
		for _, i := range harness.Shuffled(len(rivals.Middlewares)) {
			m := rivals.Middlewares[i]
			newCaller, closeIt := m.Open()
			o := harness.RunParallel(func(int) func(int) {
				call := newCaller()
				return func(calls int) {
					for range calls {
						call()
					}
				}
			}, b.inProcess)
			closeIt()
			b.add(middlewareCell(m.Framework, m.Name), o)
		}
	}
	return nil
}

// heap measures the memory that a limiter in the process keeps for a key. The subjects are made
// beforehand, so only the limiter's own copies of them are counted.
func (b *bench) heap() error {
	keys := harness.NewKeys("key", b.heapKeys)
	for _, r := range rivals.InThisProcess {
		b.heapBytes[r.Name] = heapPerKey(r, keys, 1)
		if r.Name == rivals.SlidingWindow {
			b.heapBytes[busySlidingWindow] = heapPerKey(r, keys, 5)
		}
	}
	return nil
}

// busySlidingWindow is our SlidingWindow after calls in several parts of its window, which is so
// long that no key expires before the heap is measured.
const (
	busySlidingWindow = "accesslimit SlidingWindow, busy"
	heapBusyWindow    = 10 * time.Second
)

// heapPerKey returns the heap bytes per key after calling every key the given number of times, in
// several parts of a sliding window.
func heapPerKey(r rivals.InProcess, keys harness.Keys, times int) float64 {
	limit := rivals.Roomy
	if times > 1 {
		limit.Window = heapBusyWindow
	}
	var closeIt func()
	bytes := harness.HeapOf(func() any {
		var allow func(string) bool
		allow, closeIt = r.Open(limit, keys.Len())
		for range times {
			for i := range keys.Len() {
				allow(keys.At(i))
			}
			if times > 1 {
				time.Sleep(heapBusyWindow / 32) // until the next part of the window
			}
		}
		return allow
	})
	closeIt()
	return float64(bytes) / float64(keys.Len())
}
