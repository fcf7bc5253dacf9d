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
		s, call, verdicts := newStore(t, client, patient), []algorithm.Counter{counter(name, limit)}, make([]algorithm.Verdict, 1)
		s.mustTake(t, call...)
		if got := testing.AllocsPerRun(200, func() { s.Decide(context.Background(), call, true, verdicts) }); got > 14 || !passes(verdicts[0]) {
			t.Errorf("%s: %v allocations, want at most 14; %+v", name, got, verdicts[0])
		}
	}
}

// Calls that share a script call allocate nothing of their own. Only the trips do, and starting the
// callers. How many calls share one depends on the machine.
func TestAllocationsOfMergedCalls(t *testing.T) {
	_, client := startOne(t)
	s, call := newStore(t, client, patient), []algorithm.Counter{counter("hot", daily(t, 100_000))}
	const each = 50
	storm := func() {
		together(crowd, func(int) {
			verdicts := make([]algorithm.Verdict, 1)
			for range each {
				s.Decide(context.Background(), call, true, verdicts)
			}
			if !passes(verdicts[0]) {
				t.Errorf("%+v", verdicts[0])
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
