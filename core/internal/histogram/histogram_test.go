package histogram

import (
	"slices"
	"sync"
	"testing"
	"time"
)

// A bucket includes its upper bound, and the last one has everything above.
func TestBuckets(t *testing.T) {
	var h Histogram
	for i, bound := range bounds {
		h.Observe(uint64(i), bound)
		h.Observe(uint64(i), bound+1)
	}
	h.Observe(0, -1) // a clock that steps back
	want := slices.Repeat([]uint64{2}, buckets)
	want[len(bounds)] = 1
	found := h.Snapshot()
	if !slices.Equal(found.Counts, want) || found.Count != 2*uint64(len(bounds))+1 {
		t.Errorf("counted %+v, want %v", found, want)
	}
	if !slices.IsSorted(found.Bounds) || found.Bounds[0] != 50e-6 || found.Bounds[len(bounds)-1] != 1 {
		t.Errorf("the bounds are %v", found.Bounds)
	}
}

// Nothing is lost when many goroutines count at one place, one by one and in batches.
func TestCountsAreExact(t *testing.T) {
	const goroutines, rounds = 4, 1000
	var h Histogram
	var running sync.WaitGroup
	for g := range goroutines {
		running.Go(func() {
			var b Batch
			for i := range rounds {
				h.Observe(0, time.Millisecond)
				b.Observe(time.Hour)
				if i%10 == 9 {
					b.AddTo(&h, uint64(g))
				}
			}
		})
	}
	running.Wait()
	found := h.Snapshot()
	if found.Count != 2*goroutines*rounds || found.Counts[4] != goroutines*rounds || found.Counts[buckets-1] != goroutines*rounds {
		t.Errorf("counted %+v", found)
	}
	if want := goroutines * rounds * (time.Hour + time.Millisecond); found.Sum != want.Seconds() {
		t.Errorf("the sum is %v s, want %v", found.Sum, want)
	}
}
