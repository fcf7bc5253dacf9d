package memstore

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/accesslimit/accesslimit/core/internal/algorithm"
)

// BenchmarkDecide measures one decision over one counter, by as many callers as there are
// processors: over one key, over many that are there, and over keys that are all new to a full
// table.
func BenchmarkDecide(b *testing.B) {
	all := limits(b, 1_000_000_000)
	for _, name := range []string{"bucket", "fixed window", "sliding window", "calendar window"} {
		for what, keys := range map[string]int{"one key": 1, "100k keys": 100_000} {
			b.Run(name+"/"+what, func(b *testing.B) {
				s := New(250_000, nil)
				defer s.Close()
				benchmarkDecide(b, s, all[name], names(keys))
			})
		}
	}
	b.Run("bucket/flood", func(b *testing.B) {
		s := New(10_000, nil)
		defer s.Close()
		benchmarkDecide(b, s, all["bucket"], names(1_000_000))
	})
}

// names are as many different keys of the usual length.
func names(n int) [][]byte {
	keys := make([][]byte, n)
	for i := range keys {
		keys[i] = fmt.Appendf(nil, "accesslimit:{user:%09d}:reply:tb2:1000000", i)
	}
	return keys
}

func benchmarkDecide(b *testing.B, s *Store, limit *algorithm.Limit, keys [][]byte) {
	for _, key := range keys {
		s.Decide(context.Background(), []algorithm.Counter{{Key: key, Limit: limit, Cost: 1}}, true, make([]algorithm.Verdict, 1))
	}
	b.ReportAllocs()
	b.ResetTimer()
	b.RunParallel(func(pb *testing.PB) {
		random := rand.NewPCG(rand.Uint64(), 1)
		call, verdicts := []algorithm.Counter{{Limit: limit, Cost: 1}}, make([]algorithm.Verdict, 1)
		for pb.Next() {
			call[0].Key = keys[random.Uint64()%uint64(len(keys))]
			s.Decide(context.Background(), call, true, verdicts)
		}
	})
}
