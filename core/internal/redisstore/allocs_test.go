//go:build !race

// The race detector makes allocations of its own.

package redisstore_test

import (
	"context"
	"runtime"
	"testing"

	"github.com/accesslimit/accesslimit/core/internal/algorithm"
)

func TestAllocationsOfACallAlone(t *testing.T) {
	_, client := startOne(t)
	for name, limit := range limits(t, 100_000) {
		s, op := newStore(t, client, patient), algorithm.NewOp(algorithm.AllOrNone, counter(name, limit))
		s.mustTake(t, op.Counters...)
		if got := testing.AllocsPerRun(200, func() { s.Do(context.Background(), op) }); got > 14 || !passes(op.Verdicts[0]) {
			t.Errorf("%s: %v allocations, want at most 14; %+v", name, got, op.Verdicts[0])
		}
	}
}

// Calls that share a script call allocate nothing of their own. Only the trips do, and starting the
// callers. How many calls share one depends on the machine.
func TestAllocationsOfMergedCalls(t *testing.T) {
	_, client := startOne(t)
	s, call := newStore(t, client, patient), counter("hot", daily(t, 100_000))
	const each = 50
	storm := func() {
		together(crowd, func(int) {
			op := algorithm.NewOp(algorithm.AllOrNone, call)
			for range each {
				s.Do(context.Background(), op)
			}
			if !passes(op.Verdicts[0]) {
				t.Errorf("%+v", op.Verdicts[0])
			}
		})
	}
	storm() // allocates the calls that are recycled
	var before, after runtime.MemStats
	earlier, _, _ := s.Trips()
	runtime.ReadMemStats(&before)
	storm()
	runtime.ReadMemStats(&after)
	trips, _, _ := s.Trips()
	const perTrip = 40
	got, most := after.Mallocs-before.Mallocs, perTrip*(trips-earlier)+crowd*each/2
	if got > most {
		t.Errorf("%d calls in %d trips made %d allocations, want at most %d", crowd*each, trips-earlier, got, most)
	}
	s.wantMerged(t, 2*crowd*each)
}
