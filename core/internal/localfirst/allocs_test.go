//go:build !race

// The race detector makes allocations of its own.

package localfirst_test

import (
	"context"
	"testing"

	"github.com/accesslimit/accesslimit/core/internal/algorithm"
)

// What is answered here allocates nothing.
func TestAllocations(t *testing.T) {
	behind := newShared(t, 100)
	s := newProcess(t, behind)
	refused := counter("refused", windowed(algorithm.FixedWindow, 1, hour), 1)
	other := counter("other", windowed(algorithm.FixedWindow, 2, hour), 1)
	mustTake(t, s, refused)
	hot := leased("hot", windowed(algorithm.FixedWindow, algorithm.MaxPermits, hour), 1, 1_000_000)
	for name, counters := range map[string][]algorithm.Counter{
		"a refusal": {refused}, "a refusal of two": {other, refused}, "a permit that was leased": {hot},
	} {
		verdicts := make([]algorithm.Verdict, len(counters))
		decide := func() { s.Decide(context.Background(), counters, true, verdicts) }
		for range 100_000 {
			decide()
		}
		if got := testing.AllocsPerRun(1000, decide); got != 0 || verdicts[0].From == algorithm.FromStore {
			t.Errorf("%s: %v allocations, %+v", name, got, verdicts[0])
		}
	}
}
