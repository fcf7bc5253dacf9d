// Package histogram counts how long calls take, without making processors wait for each other.
package histogram

import (
	"sync/atomic"
	"time"
)

// bounds are the upper bounds of the buckets. The lowest is about the time of a command to a Redis
// on the same machine. Calls end by Options.Timeout, which is 100 ms by default, so calls that
// timed out are just above the bound of 100 ms.
var bounds = [...]time.Duration{
	50 * time.Microsecond, 100 * time.Microsecond, 250 * time.Microsecond, 500 * time.Microsecond,
	time.Millisecond, 2500 * time.Microsecond, 5 * time.Millisecond, 10 * time.Millisecond, 25 * time.Millisecond,
	50 * time.Millisecond, 100 * time.Millisecond, 250 * time.Millisecond, 500 * time.Millisecond, time.Second,
}

const (
	buckets = len(bounds) + 1
	stripes = 8 // a power of two
)

// Histogram counts durations. The zero Histogram is empty. It is safe for concurrent use.
type Histogram struct {
	stripes [stripes]stripe
}

// stripe is a part of the counts. It fills two cache lines of 64 bytes, and a third one separates
// it from the next stripe.
type stripe struct {
	counts [buckets]atomic.Uint64
	nanos  atomic.Uint64
	_      [64]byte
}

// Observe counts a duration. Observations with different stripe numbers rarely wait for each other.
func (h *Histogram) Observe(number uint64, took time.Duration) {
	s := &h.stripes[number%stripes]
	s.counts[bucket(took)].Add(1)
	s.nanos.Add(uint64(max(0, took)))
}

func bucket(took time.Duration) int {
	for i, bound := range bounds {
		if took <= bound {
			return i
		}
	}
	return len(bounds)
}

// Batch collects durations in one goroutine, until they are added to a Histogram together. The zero
// Batch is empty.
type Batch struct {
	counts [buckets]uint64
	nanos  uint64
}

// Observe counts a duration.
func (b *Batch) Observe(took time.Duration) {
	b.counts[bucket(took)]++
	b.nanos += uint64(max(0, took))
}

// AddTo adds the durations to a histogram, and empties the batch.
func (b *Batch) AddTo(h *Histogram, number uint64) {
	s := &h.stripes[number%stripes]
	for i, n := range b.counts {
		if n > 0 {
			s.counts[i].Add(n)
		}
	}
	s.nanos.Add(b.nanos)
	*b = Batch{}
}

// Snapshot is what a Histogram has counted, in seconds.
type Snapshot struct {
	Bounds []float64
	Counts []uint64 // of each bucket; the last one is above all bounds
	Count  uint64
	Sum    float64
}

// Snapshot returns what was counted so far.
func (h *Histogram) Snapshot() Snapshot {
	found, nanos := Snapshot{Counts: make([]uint64, buckets)}, uint64(0)
	for _, bound := range bounds {
		found.Bounds = append(found.Bounds, bound.Seconds())
	}
	for i := range h.stripes {
		s := &h.stripes[i]
		for b := range s.counts {
			n := s.counts[b].Load()
			found.Counts[b] += n
			found.Count += n
		}
		nanos += s.nanos.Load()
	}
	found.Sum = time.Duration(nanos).Seconds()
	return found
}
