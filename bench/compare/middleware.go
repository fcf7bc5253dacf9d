package main

import (
	"github.com/accesslimit/accesslimit/bench/internal/harness"
	"github.com/accesslimit/accesslimit/bench/rivals"
)

// middlewares measures handlers with and without limits, called from all cores.
func (b *bench) middlewares() error {
	for range b.localRounds {
		for _, i := range harness.Shuffled(len(rivals.Middlewares)) {
			m := rivals.Middlewares[i]
			newCaller, closeIt := m.Open()
			p := harness.RunParallel(func(int) func(int) {
				call := newCaller()
				return func(calls int) {
					for range calls {
						call()
					}
				}
			}, b.inProcess)
			closeIt()
			c := cell{workload: m.Framework, rival: m.Name}
			b.local[c] = append(b.local[c], local{nanos: p.NanosPerCall(), cpu: p.CPUNanosPerCall(), allocs: p.AllocsPerCall(), bytes: p.BytesPerCall()})
		}
	}
	return nil
}
