package memstore

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/accesslimit/accesslimit/core/internal/algorithm"
)

// together runs a function in 64 goroutines that begin at once.
func together(do func(goroutine int)) {
	begin := make(chan struct{})
	var all sync.WaitGroup
	for i := range 64 {
		all.Go(func() {
			<-begin
			do(i)
		})
	}
	close(begin)
	all.Wait()
}

// Callers ask for several keys, each in another order. Locking the keys in that order would
// deadlock.
func TestSeveralKeysInAnyOrderAdmitMax(t *testing.T) {
	for name, limit := range limits(t, 1000) {
		for _, maxKeys := range []int{100, 100_000} {
			s, _ := newStore(maxKeys)
			var admitted atomic.Int64
			together(func(goroutine int) {
				order := rand.New(rand.NewPCG(1, uint64(goroutine))).Perm(8)
				op := algorithm.NewOp(algorithm.AllOrNone, make([]algorithm.Counter, 8)...)
				for i, n := range order {
					op.Counters[i] = counter(fmt.Sprint("key", n), limit)
				}
				for range 30 {
					s.Do(context.Background(), op)
					if fits(op.Verdicts) {
						admitted.Add(1)
					}
				}
			})
			if admitted.Load() != 1000 {
				t.Errorf("%s, table of %d: %d admitted, want 1000", name, maxKeys, admitted.Load())
			}
			for n := range 8 {
				if left := s.left(fmt.Sprint("key", n), limit); left != 0 {
					t.Errorf("%s, table of %d: key %d has %d left", name, maxKeys, n, left)
				}
			}
		}
	}
}

func fits(verdicts []algorithm.Verdict) bool {
	for _, v := range verdicts {
		if v.RetryAfter > 0 {
			return false
		}
	}
	return true
}

// Floods, resets, sweeps and looks side by side leave a table that counts what it holds, and never
// holds more than it may.
func TestEverythingAtOnce(t *testing.T) {
	const maxKeys = 5000
	s := New(maxKeys, nil)
	defer s.Close()
	limit := limits(t, 10)["sliding window"]
	together(func(goroutine int) {
		for i := range 300 {
			switch goroutine % 8 {
			case 0:
				s.Sweep()
			case 1:
				_, _ = s.Reset(context.Background(), fmt.Append(nil, "key", i))
			case 2:
				s.left(fmt.Sprint("key", i), limit)
			case 3:
				s.decide(true, counter(fmt.Sprint("key", i), limit), counter("busy", limit))
			case 4:
				if _, n := s.size(); n > maxKeys {
					t.Errorf("%d keys, at most %d may be", n, maxKeys)
				}
			default:
				s.take(fmt.Sprint("key", goroutine, ":", i), limit)
			}
		}
	})
	if said, there := s.size(); said != there {
		t.Errorf("%d keys are said to be there, %d are", said, there)
	}
}
