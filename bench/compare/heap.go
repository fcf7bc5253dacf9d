package main

import (
	"time"

	"github.com/accesslimit/accesslimit/bench/internal/harness"
	"github.com/accesslimit/accesslimit/bench/rivals"
)

// heap weighs what a limiter in the process keeps for a key. The subjects are there before and are not counted, but what a limiter
// copies of them is.
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

// heapBusyWindow is so short that its 32 parts turn while all keys are called once, and so long that none of them expires.
const heapBusyWindow = 20 * time.Second

// heapPerKey calls every key so often, over a while that a sliding window divides.
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
		}
		return allow
	})
	closeIt()
	return float64(bytes) / float64(keys.Len())
}
