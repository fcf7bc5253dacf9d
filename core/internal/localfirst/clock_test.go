package localfirst_test

import (
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/accesslimit/accesslimit/core/internal/algorithm"
	. "github.com/accesslimit/accesslimit/core/internal/localfirst/localtest"
)

// Answers of the store expire when this machine was suspended, or its clock was set ahead: the
// refusal may be over, and the permits were charged in another sub-window.
func TestNothingOutlivesASuspension(t *testing.T) {
	for _, jump := range []time.Duration{20 * time.Millisecond, 8 * time.Hour} {
		synctest.Test(t, func(t *testing.T) {
			shared := NewShared(t, 100)
			p, wall := NewProcess(t, shared), new(atomic.Int64)
			p.SetWallClock(func() time.Time { return time.Now().Add(time.Duration(wall.Load())) })
			refused := Counter("user:a", Windowed(algorithm.FixedWindow, 1, Minute), 1)
			c := Leased("user:b", Windowed(algorithm.SlidingWindow, 1000, Minute), 1, 10)
			p.MustTake(t, refused)
			p.MustRefuse(t, algorithm.FromStore, refused)
			for p.MustTake(t, c).From != algorithm.FromLease {
			}
			p.MustRefuse(t, algorithm.FromRefusal, refused)
			wall.Store(int64(jump))
			time.Sleep(20 * time.Millisecond)
			want := p.MustRefuse(t, algorithm.FromStore, refused)
			want.From = algorithm.FromRefusal
			if again := p.MustRefuse(t, algorithm.FromRefusal, refused); again != want {
				t.Errorf("repeated as %+v, want %+v", again, want)
			}
			if v := p.MustTake(t, c); v.From != algorithm.FromStore {
				t.Errorf("a permit of a lease from before: %+v", v)
			}
		})
	}
}
