package algorithm_test

import (
	"testing"

	"github.com/accesslimit/accesslimit/core/internal/algorithm"
)

// subWindow returns the longest time by which a permit may come back late.
func subWindow(window int64) int64 { return (window + 31) / 32 }

// For every microsecond of a window, a permit used then comes back when its sub-window has left the
// window, at one of 32 moments.
func TestSlidingWindowComesBackIn32Steps(t *testing.T) {
	for _, window := range []int64{millisecond, 1001, 1007, 1023} {
		limit := algorithm.Windowed(algorithm.SlidingWindow, 1, window)
		begin := early - early%window
		moments := make(map[int64]bool)
		before := int64(0)
		for at := begin; at < begin+window; at++ {
			c := counter{limit: limit}
			free := at + c.decide(at, 1).ResetAfter
			if free <= at+window || free > at+window+subWindow(window) || free < before {
				t.Fatalf("window %d: what was used at %d is free at %d, before it %d", window, at-begin, free-begin, before-begin)
			}
			moments[free], before = true, free
		}
		if len(moments) != 32 {
			t.Errorf("window %d: permits come back at %d moments, want 32", window, len(moments))
		}
	}
}

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
