package main

import (
	"fmt"
	"runtime"
	"sync/atomic"

	"github.com/accesslimit/accesslimit/bench/internal/harness"
	"github.com/accesslimit/accesslimit/bench/rivals"
)

// local is the result of one round of a limiter in this process.
type local struct {
	nanos, cpu    float64 // elapsed time and processor time of a call, in nanoseconds
	allocs, bytes float64
	refused       float64 // of a hundred calls, all of which the limit allows
}

// inThisProcess measures the limiters that count in the process, called from all cores. The first
// call on each key comes with another copy of its text, as in a service: a limiter that finds the
// very string that it stored need not read it. With the same copy, go-limiter takes 0.75 to 0.8 of
// this time on 100,000 keys.
func (b *bench) inThisProcess() error {
	for _, n := range []int{1, b.manyKeys} {
		first, keys, picks := harness.NewKeys("key", n), harness.NewKeys("key", n), harness.One()
		if n > 1 {
			picks = harness.Uniform(n)
		}
		for range b.localRounds {
			for _, i := range harness.Shuffled(len(rivals.InThisProcess)) {
				r := rivals.InThisProcess[i]
				c := cell{workload: keysInProcess(n), rival: r.Name}
				b.local[c] = append(b.local[c], b.runInProcess(r, first, keys, picks))
			}
		}
	}
	return nil
}

// keysInProcess returns the name of the workload with n keys.
func keysInProcess(n int) string { return fmt.Sprintf("in process, %d keys", n) }

func (b *bench) runInProcess(r rivals.InProcess, first, keys harness.Keys, picks []uint32) local {
	limit := rivals.Roomy
	if keys.Len() == 1 {
		limit = rivals.RoomyHot
	}
	allow, closeIt := r.Open(limit, keys.Len())
	defer closeIt()
	for i := range first.Len() {
		allow(first.At(i))
	}
	runtime.GC() // frees the last limiter
	var refused atomic.Int64
	p := harness.RunParallel(func(goroutine int) func(int) {
		next, mask := goroutine*len(picks)/2, len(picks)-1
		return func(calls int) {
			no, at := 0, next // its own copy: next may share a cache line with another goroutine's
			for range calls {
				if !allow(keys.At(int(picks[at&mask]))) {
					no++
				}
				at++
			}
			next = at
			if no > 0 {
				refused.Add(int64(no))
			}
		}
	}, b.inProcess)
	return local{p.NanosPerCall(), p.CPUNanosPerCall(), p.AllocsPerCall(), p.BytesPerCall(), 100 * float64(refused.Load()) / float64(p.Calls)}
}
