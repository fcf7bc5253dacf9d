package algorithm_test

import (
	"fmt"
	"testing"

	"github.com/accesslimit/accesslimit/core/internal/algorithm"
)

// epochs models a fixed window as it is promised: the first call that is admitted after a window
// opens the next one.
type epochs struct {
	limit    algorithm.Limit
	admitted []admission
}

// window returns the end of the window that contains now, and the permits used in it, computed from
// all admitted calls. If there is no such window, it ends one window from now.
func (e *epochs) window(now int64) (end, used int64) {
	end = now
	for i, call := range e.admitted {
		if i == 0 || call.at >= end {
			end, used = call.at+e.limit.Window, 0
		}
		used += call.cost
	}
	if len(e.admitted) == 0 || now >= end {
		return now + e.limit.Window, 0
	}
	return end, used
}

func (e *epochs) check(t failer, now, cost int64, v algorithm.Verdict) {
	t.Helper()
	end, used := e.window(now)
	want := algorithm.Verdict{At: now, Remaining: e.limit.Max - used}
	if used+cost > e.limit.Max {
		want.RetryAfter = end - now
	} else {
		e.admitted = append(e.admitted, admission{now, cost})
		want.Remaining, want.Taken = want.Remaining-cost, cost
		used += cost
	}
	if used > 0 {
		want.ResetAfter = end - now
	}
	if v != want {
		t.Errorf("got %+v, want %+v", v, want)
	}
}

func TestFixedWindowIsExact(t *testing.T) {
	for _, window := range windows {
		for _, most := range []int64{1, 7, 600_000, algorithm.MaxPermits} {
			t.Run(fmt.Sprintf("%d per %d", most, window), func(t *testing.T) {
				limit := algorithm.Windowed(algorithm.FixedWindow, most, window)
				play(t, limit, func() model { return &epochs{limit: limit} })
			})
		}
	}
}

// The window is closed for its last microsecond and open again at the next.
func TestFixedWindowBoundary(t *testing.T) {
	for _, window := range windows {
		c := counter{limit: algorithm.Windowed(algorithm.FixedWindow, 2, window)}
		c.decide(early, 1)
		c.decide(early+window-1, 1)
		if v := c.decide(early+window-1, 1); v.RetryAfter != 1 || v.Remaining != 0 {
			t.Errorf("window %d: %+v in its last microsecond, want RetryAfter 1", window, v)
		}
		if v := c.decide(early+window, 2); v.RetryAfter != 0 || v.ResetAfter != window {
			t.Errorf("window %d: %+v after its end, want another window", window, v)
		}
	}
}
