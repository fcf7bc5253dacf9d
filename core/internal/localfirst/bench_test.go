package localfirst_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/accesslimit/accesslimit/core/internal/algorithm"
	. "github.com/accesslimit/accesslimit/core/internal/localfirst/localtest"
)

// BenchmarkDenyCache measures a remembered refusal, of one key and of many.
func BenchmarkDenyCache(b *testing.B) {
	for _, keys := range []int{1, 10_000} {
		b.Run(fmt.Sprint(keys, " keys"), func(b *testing.B) {
			p := NewProcess(b, NewShared(b, 100_000))
			limit := Windowed(algorithm.SlidingWindow, 1, Hour)
			benchmark(b, keys, func(i int) algorithm.Counter { return Counter(fmt.Sprint("user:", i), limit, 1) }, p)
		})
	}
}

// BenchmarkDenyCacheTogether measures a remembered refusal of a call with three counters.
func BenchmarkDenyCacheTogether(b *testing.B) {
	p := NewProcess(b, NewShared(b, 100_000))
	together := []algorithm.Counter{
		Counter("user:a", Windowed(algorithm.SlidingWindow, 1, Hour), 1), Counter("user:a", Windowed(algorithm.FixedWindow, 100, Hour), 1),
		Counter("all", Windowed(algorithm.SlidingWindow, 1000, Hour), 1),
	}
	p.Ask(together...)
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		op := algorithm.NewOp(algorithm.AllOrNone, together...)
		for pb.Next() {
			p.Do(context.Background(), op)
		}
	})
}

// BenchmarkLease measures a leased permit, of one key and of many.
func BenchmarkLease(b *testing.B) {
	for _, keys := range []int{1, 1000} {
		b.Run(fmt.Sprint(keys, " keys"), func(b *testing.B) {
			p := NewProcess(b, NewShared(b, 100_000))
			limit := Windowed(algorithm.SlidingWindow, algorithm.MaxPermits, Minute)
			benchmark(b, keys, func(i int) algorithm.Counter { return Leased(fmt.Sprint("user:", i), limit, 1, 1_000_000) }, p)
		})
	}
}

// BenchmarkLeaseFetch measures a call of a leased key that has no permits left.
func BenchmarkLeaseFetch(b *testing.B) {
	p := NewProcess(b, NewShared(b, 100_000))
	limit := Windowed(algorithm.SlidingWindow, algorithm.MaxPermits, Minute)
	benchmark(b, 1000, func(i int) algorithm.Counter { return Leased(fmt.Sprint("user:", i), limit, 1, 1) }, p)
}

func benchmark(b *testing.B, keys int, of func(int) algorithm.Counter, p Process) {
	counters := make([]algorithm.Counter, keys)
	for i := range counters {
		counters[i] = of(i)
		p.Ask(counters[i])
		p.Ask(counters[i])
	}
	b.ReportAllocs()
	b.ResetTimer()
	b.RunParallel(func(pb *testing.PB) {
		op := algorithm.NewOp(algorithm.AllOrNone, counters[0])
		for i := 0; pb.Next(); i++ {
			op.Counters = counters[i%keys : i%keys+1]
			p.Do(context.Background(), op)
		}
	})
}
