package localfirst_test

import (
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/accesslimit/accesslimit/core/internal/algorithm"
)

// What the store said before this machine was suspended, or its clock was set ahead, is not repeated afterwards: the refusal may be
// over, and the permits were charged in another sub-window.
func TestNothingOutlivesASuspension(t *testing.T) {
	for _, jump := range []time.Duration{20 * time.Millisecond, 8 * time.Hour} {
		synctest.Test(t, func(t *testing.T) {
			behind := newShared(t, 100)
			s, wall := newProcess(t, behind), new(atomic.Int64)
			s.SetWallClock(func() time.Time { return time.Now().Add(time.Duration(wall.Load())) })
			refused, c := counter("user:a", windowed(algorithm.FixedWindow, 1, minute), 1), leased("user:b", windowed(algorithm.SlidingWindow, 1000, minute), 1, 10)
			mustTake(t, s, refused)
			mustRefuse(t, s, algorithm.FromStore, refused)
			for mustTake(t, s, c).From != algorithm.FromLease {
			}
			mustRefuse(t, s, algorithm.FromRefusal, refused)
			wall.Store(int64(jump))
			time.Sleep(20 * time.Millisecond)
			told := mustRefuse(t, s, algorithm.FromStore, refused)
			if again := mustRefuse(t, s, algorithm.FromRefusal, refused); again != (algorithm.Verdict{At: told.At, RetryAfter: told.RetryAfter, ResetAfter: told.ResetAfter, From: algorithm.FromRefusal}) {
				t.Errorf("%+v is repeated as %+v", told, again)
			}
			if v := mustTake(t, s, c); v.From != algorithm.FromStore {
				t.Errorf("a permit of a lease from before: %+v", v)
			}
		})
	}
}
