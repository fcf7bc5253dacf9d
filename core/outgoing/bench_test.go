package outgoing_test

import (
	"context"
	"runtime"
	"testing"

	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/core/outgoing"
	"github.com/accesslimit/accesslimit/internal/redistest"
)

// BenchmarkFreeTurn measures a turn that is free beside a call of a Counter with the same bucket, alone
// and with 256 goroutines, whose calls share pipelines. Callers of turns may leave, as those of clients do.
func BenchmarkFreeTurn(b *testing.B) {
	limiter := newLimiter(b, core.Options{Redis: redistest.Start(b).Client(b)})
	huge := core.PerSecond(10_000_000).Bucket(10_000_000)
	turns, counter := newTurns(b, limiter, outgoing.Rule{Limit: huge}), limiter.MustCounter("counter", huge)
	ctx, cancel := context.WithCancel(background)
	defer cancel()
	for name, do := range map[string]func() error{
		"turn": func() error { _, err := turns.Take(ctx, alice); return err },
		"call": func() error { _, err := counter.Allow(background, alice); return err },
	} {
		b.Run("alone/"+name, func(b *testing.B) {
			for b.Loop() {
				if err := do(); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run("256 goroutines/"+name, func(b *testing.B) {
			before := limiter.Stats()
			b.SetParallelism(256 / runtime.GOMAXPROCS(0))
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					if err := do(); err != nil {
						b.Error(err)
						return
					}
				}
			})
			after := limiter.Stats()
			b.ReportMetric(float64(after.Trips-before.Trips)/float64(b.N), "trips/op")
		})
	}
}
