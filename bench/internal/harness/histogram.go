package harness

import (
	"math/bits"
	"time"
)

// Histogram counts latencies without an allocation. Buckets are 1/64 of a power of two wide, so a
// percentile is off by less than 1 %.
type Histogram struct{ counts [buckets]uint32 }

const (
	fine    = 6  // bits of a latency that tell buckets apart
	longest = 36 // bits of the longest latency: a minute
	buckets = (longest - fine + 2) << fine
)

// bucket returns the bucket of a latency: one for each nanosecond up to 63 ns, then 64 for each
// power of two.
func bucket(d time.Duration) int {
	ns := min(uint64(max(d, 0)), 1<<(longest+1)-1)
	if ns < 1<<fine {
		return int(ns)
	}
	shift := bits.Len64(ns) - 1 - fine
	return shift<<fine + int(ns>>shift)
}

// middle returns the latency in the middle of a bucket.
func middle(bucket int) time.Duration {
	if bucket < 2<<fine {
		return time.Duration(bucket)
	}
	shift := bucket>>fine - 1
	low := uint64(bucket-shift<<fine) << shift
	return time.Duration(low + 1<<shift/2)
}

// Add counts a latency.
func (h *Histogram) Add(d time.Duration) { h.counts[bucket(d)]++ }

// Merge adds the counts of another histogram.
func (h *Histogram) Merge(other *Histogram) {
	for i, n := range other.counts {
		h.counts[i] += n
	}
}

// Percentile returns the latency that p percent of the calls do not exceed, or 0 if there were
// none.
func (h *Histogram) Percentile(p float64) time.Duration {
	var all uint64
	for _, n := range h.counts {
		all += uint64(n)
	}
	rank, seen := p/100*float64(all), uint64(0)
	for i, n := range h.counts {
		if seen += uint64(n); n > 0 && float64(seen) >= rank {
			return middle(i)
		}
	}
	return 0
}

// Sparse returns the buckets that are not empty, to be sent to another process.
func (h *Histogram) Sparse() map[int]uint32 {
	found := make(map[int]uint32)
	for i, n := range h.counts {
		if n > 0 {
			found[i] = n
		}
	}
	return found
}

// AddSparse adds the counts that Sparse returned for another histogram.
func (h *Histogram) AddSparse(found map[int]uint32) {
	for i, n := range found {
		h.counts[i] += n
	}
}
