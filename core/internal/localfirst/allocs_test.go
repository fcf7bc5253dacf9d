//go:build !race

// The race detector allocates, too.

package localfirst_test

import (
	"context"
	"testing"

	"github.com/accesslimit/accesslimit/core/internal/algorithm"
	. "github.com/accesslimit/accesslimit/core/internal/localfirst/localtest"
)

// A call that is answered here allocates nothing.
func TestAllocations(t *testing.T) {
	p := NewProcess(t, NewShared(t, 100))
	refused := Counter("refused", Windowed(algorithm.FixedWindow, 1, Hour), 1)
	other := Counter("other", Windowed(algorithm.FixedWindow, 2, Hour), 1)
	p.MustTake(t, refused)
	hot := Leased("hot", Windowed(algorithm.FixedWindow, algorithm.MaxPermits, Hour), 1, 1_000_000)
	for name, counters := range map[string][]algorithm.Counter{
		"a refusal": {refused}, "a refusal of two": {other, refused}, "a leased permit": {hot},
	} {
		op := algorithm.NewOp(algorithm.AllOrNone, counters...)
		decide := func() { p.Do(context.Background(), op) }
		for range 100_000 {
			decide()
		}
		if got := testing.AllocsPerRun(1000, decide); got != 0 || op.Verdicts[0].From == algorithm.FromStore {
			t.Errorf("%s: %v allocations, %+v", name, got, op.Verdicts[0])
		}
	}
}
