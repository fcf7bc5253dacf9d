package algorithm_test

import (
	"testing"

	"github.com/accesslimit/accesslimit/core/internal/algorithm"
)

// The older sub-windows of a state do not accumulate, however long it lives: after the first turn
// its size stays the same.
func TestSlidingWindowStateStaysSmall(t *testing.T) {
	const window = second
	c, now := counter{limit: algorithm.Windowed(algorithm.SlidingWindow, 1000, window)}, int64(early)
	c.decide(now, 1)
	if c.state.More != nil {
		t.Error("a state that never left its sub-window takes more room than it needs")
	}
	now += window / 16
	c.decide(now, 1)
	v := new(algorithm.Verdict)
	again := func() {
		now += window / 64
		c.limit.Decide(&c.state, now, 1, "", v)
	}
	if n := testing.AllocsPerRun(2000, again); n != 0 || c.state.More == nil {
		t.Errorf("%v allocations for each call", n)
	}
}
