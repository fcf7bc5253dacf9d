package algorithm_test

import (
	"fmt"
	"testing"

	"github.com/accesslimit/accesslimit/core/internal/algorithm"
)

// history models an ideal sliding window: it holds every admitted call, to the microsecond.
type history struct {
	limit    algorithm.Limit
	admitted []admission
}

type admission struct{ at, cost int64 }

// since returns the permits admitted at that moment or later.
func (h *history) since(at int64) (sum int64) {
	for i := len(h.admitted) - 1; i >= 0 && h.admitted[i].at >= at; i-- {
		sum += h.admitted[i].cost
	}
	return sum
}

// wait returns how long it takes until a cost fits, to the microsecond; 0: it fits now.
func (h *history) wait(now, cost int64) int64 {
	missing := h.since(now-h.limit.Window+1) + cost - h.limit.Max
	for _, call := range h.admitted {
		if missing <= 0 {
			break
		}
		if call.at > now-h.limit.Window {
			if missing -= call.cost; missing <= 0 {
				return call.at + h.limit.Window - now
			}
		}
	}
	return 0
}

// subWindow returns the longest time by which a permit may come back late.
func subWindow(window int64) int64 { return (window + 31) / 32 }

// check checks the promise: never more than Max in any span of Window, both ends included, and no
// permit comes back more than Window/32 late.
func (h *history) check(t failer, now, cost int64, v algorithm.Verdict) {
	t.Helper()
	lag := subWindow(h.limit.Window)
	exact := h.wait(now, cost)
	if v.RetryAfter == 0 {
		h.admitted = append(h.admitted, admission{now, cost})
		if sum := h.since(now - h.limit.Window); sum > h.limit.Max {
			t.Errorf("%d admitted in one window, at most %d may be", sum, h.limit.Max)
		}
	} else if v.RetryAfter < exact || v.RetryAfter > exact+lag {
		t.Errorf("RetryAfter is %d, exactly it were %d, and at most %d more may be", v.RetryAfter, exact, lag)
	}
	most, least := h.limit.Max-h.since(now-h.limit.Window+1), h.limit.Max-h.since(now-h.limit.Window-lag)
	if v.Remaining > most || v.Remaining < max(0, least) {
		t.Errorf("Remaining is %d, want %d to %d", v.Remaining, least, most)
	}
}

func TestSlidingWindowNeverAdmitsMoreThanMaxInAnyWindow(t *testing.T) {
	for _, window := range windows {
		for _, most := range []int64{1, 2, 7, 100, algorithm.MaxPermits} {
			t.Run(fmt.Sprintf("%d per %d", most, window), func(t *testing.T) {
				limit := algorithm.Windowed(algorithm.SlidingWindow, most, window)
				play(t, limit, func() model { return &history{limit: limit} })
			})
		}
	}
}

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

// The longest window is too long to try every microsecond, but its sub-windows begin where they
// should.
func TestSlidingWindowOf366Days(t *testing.T) {
	const window = algorithm.MaxWindow
	limit := algorithm.Windowed(algorithm.SlidingWindow, 1, window)
	begin := int64(early - early%window)
	for n := range int64(32) {
		from, to := begin+n*window/32, begin+(n+1)*window/32
		for _, at := range []int64{from, from + 1, to - 1} {
			c := counter{limit: limit}
			if free := at + c.decide(at, 1).ResetAfter; free != to+window {
				t.Errorf("what was used in sub-window %d is free at %d, want %d", n, free-begin, to+window-begin)
			}
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
