package main

import (
	"time"

	"github.com/accesslimit/accesslimit/bench/internal/harness"
	"github.com/accesslimit/accesslimit/bench/rivals"
)

// heap measures the memory that a limiter in the process keeps for a key. The subjects exist
// before and are not counted; a limiter's copies of them are.
func (b *bench) heap() error {
	keys := harness.NewKeys("key", b.heapKeys)
	for _, r := range rivals.InThisProcess {
		b.heapBytes[r.Name] = heapPerKey(r, keys, 1)
		if r.Name == rivals.SlidingWindow {
			b.busyHeap = heapPerKey(r, keys, 5)
		}
	}
	return nil
}

// heapBusyWindow is so long that no key expires before the heap is measured.
const heapBusyWindow = 10 * time.Second

// heapPerKey calls every key that many times, in several parts of a sliding window.
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
