package redisstore_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/accesslimit/accesslimit/core/internal/algorithm"
	"github.com/accesslimit/accesslimit/internal/redistest"
)

// endless is a limit that no benchmark uses up.
var endless = algorithm.Windowed(algorithm.SlidingWindow, algorithm.MaxPermits, 3600*1_000_000)

// BenchmarkDirect measures a call that is alone: one goroutine, one counter.
func BenchmarkDirect(b *testing.B) {
	_, client := startOne(b)
	benchmarkDecide(b, client, 0, func(int64) []algorithm.Counter {
		return []algorithm.Counter{counter("alone", &endless)}
	})
}

// BenchmarkHotKey measures 256 callers of one counter, whose calls leave together and are merged.
func BenchmarkHotKey(b *testing.B) {
	_, client := startOne(b)
	benchmarkDecide(b, client, 128, func(int64) []algorithm.Counter {
		return []algorithm.Counter{counter("hot", &endless)}
	})
}

// BenchmarkManyKeys measures 256 callers with a counter each, whose calls leave together.
func BenchmarkManyKeys(b *testing.B) {
	_, client := startOne(b)
	benchmarkDecide(b, client, 128, func(caller int64) []algorithm.Counter {
		return []algorithm.Counter{counter(fmt.Sprint("subject", caller), &endless)}
	})
}

// BenchmarkTwoShards measures calls over two servers. Each caller has a counter of its own beside
// one that all share.
func BenchmarkTwoShards(b *testing.B) {
	ring := redistest.StartRing(b, 2)
	slot := ringSlot(ring)
	on := func(server int, name string) algorithm.Counter {
		for i := 0; ; i++ {
			if c := counter(fmt.Sprint(name, i), &endless); slot(b, string(c.Key)) == server {
				return c
			}
		}
	}
	shared := on(1, "shared")
	var own []algorithm.Counter
	for i := range 64 {
		own = append(own, on(0, fmt.Sprint("own", i)))
	}
	for _, parallelism := range []int{0, 64} {
		b.Run(fmt.Sprint(parallelism), func(b *testing.B) {
			benchmarkDecide(b, ring.Client(b), parallelism, func(caller int64) []algorithm.Counter {
				return []algorithm.Counter{own[caller%64], shared}
			})
		})
	}
}

// benchmarkDecide measures calls for the counters that each caller has, by one caller if
// parallelism is 0, or else by so many times GOMAXPROCS.
func benchmarkDecide(b *testing.B, client redis.UniversalClient, parallelism int, counters func(caller int64) []algorithm.Counter) {
	b.Helper()
	s := newStore(b, client, patient)
	var callers atomic.Int64
	decide := func(next func() bool) {
		for op := algorithm.NewOp(algorithm.AllOrNone, counters(callers.Add(1))...); next(); {
			if s.Do(context.Background(), op); !passes(op.Verdicts[0]) {
				b.Errorf("%+v", op.Verdicts)
			}
		}
	}
	b.ReportAllocs()
	b.ResetTimer()
	if parallelism == 0 {
		decide(b.Loop)
		return
	}
	b.SetParallelism(parallelism)
	b.RunParallel(func(pb *testing.PB) { decide(pb.Next) })
}
