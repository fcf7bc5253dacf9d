package localfirst_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/accesslimit/accesslimit/core/internal/algorithm"
)

// A refusal that is remembered, of one key and of many.
func BenchmarkRefusals(b *testing.B) {
	for _, keys := range []int{1, 10_000} {
		b.Run(fmt.Sprint(keys, " keys"), func(b *testing.B) {
			s := newProcess(b, newShared(b, 100_000))
			limit := windowed(algorithm.SlidingWindow, 1, hour)
			benchmark(b, keys, func(i int) algorithm.Counter { return counter(fmt.Sprint("user:", i), limit, 1) }, s.Decide)
		})
	}
}

// A call of three counters that was refused.
func BenchmarkRefusalsTogether(b *testing.B) {
	s := newProcess(b, newShared(b, 100_000))
	together := []algorithm.Counter{
		counter("user:a", windowed(algorithm.SlidingWindow, 1, hour), 1), counter("user:a", windowed(algorithm.FixedWindow, 100, hour), 1),
		counter("all", windowed(algorithm.SlidingWindow, 1000, hour), 1),
	}
	ask(s, together...)
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		verdicts := make([]algorithm.Verdict, 3)
		for pb.Next() {
			s.Decide(context.Background(), together, true, verdicts)
		}
	})
}

// A permit that was leased, of one key and of many.
func BenchmarkLeases(b *testing.B) {
	for _, keys := range []int{1, 1000} {
		b.Run(fmt.Sprint(keys, " keys"), func(b *testing.B) {
			s := newProcess(b, newShared(b, 100_000))
			limit := windowed(algorithm.SlidingWindow, algorithm.MaxPermits, minute)
			benchmark(b, keys, func(i int) algorithm.Counter {
				c := counter(fmt.Sprint("user:", i), limit, 1)
				c.Lease = 1_000_000
				return c
			}, s.Decide)
		})
	}
}

func benchmark(b *testing.B, keys int, of func(int) algorithm.Counter, decide func(context.Context, []algorithm.Counter, bool, []algorithm.Verdict)) {
	counters := make([]algorithm.Counter, keys)
	for i := range counters {
		counters[i] = of(i)
		for range 2 {
			decide(context.Background(), counters[i:i+1], true, make([]algorithm.Verdict, 1))
		}
	}
	b.ReportAllocs()
	b.ResetTimer()
	b.RunParallel(func(pb *testing.PB) {
		verdicts := make([]algorithm.Verdict, 1)
		for i := 0; pb.Next(); i++ {
			decide(context.Background(), counters[i%keys:i%keys+1], true, verdicts)
		}
	})
}
