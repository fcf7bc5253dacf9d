package core_test

import (
	"testing"
	"time"

	"github.com/accesslimit/accesslimit/core"
)

// withMax is the same limit with another Max, and for a bucket another rate and size.
func withMax(limit core.Limit, permits int) core.Limit {
	limit.Max = permits
	return limit
}

// The use under a limit of ten was read as ten times as much under one of a hundred, so the raise
// refused everybody.
func TestRaisedLimitDoesNotReadOldStateAsMore(t *testing.T) {
	eachAlgorithm(t, 10, func(t *testing.T, limiter *core.Limiter, _ *wallClock, limit core.Limit) {
		took(t, limiter, limit, 8)
		for _, raised := range []int{11, 97, 100, 9_999} {
			remains(t, limiter, withMax(limit, raised), raised-8)
		}
		took(t, limiter, withMax(limit, 100), 92)
		tookNone(t, limiter, withMax(limit, 100), 1)
	})
}

// A raised rate refused until what was used under the old one had drained at the old one's pace.
func TestRaisedRateLetsThroughAtOnce(t *testing.T) {
	eachAlgorithm(t, 10, func(t *testing.T, limiter *core.Limiter, now *wallClock, limit core.Limit) {
		took(t, limiter, limit, 10)
		tookNone(t, limiter, limit, 1)
		raised := withMax(limit, 60)
		took(t, limiter, raised, 50)
		tookNone(t, limiter, raised, 1)
		if limit.Algorithm == core.TokenBucket { // and comes back at the new one's
			now.pass(10 * time.Second)
			remains(t, limiter, raised, 10)
		}
	})
}

// A lowered limit held for new keys only: whoever was counted already kept the old one.
func TestLoweredLimitHoldsForOldKeys(t *testing.T) {
	eachAlgorithm(t, 10, func(t *testing.T, limiter *core.Limiter, now *wallClock, limit core.Limit) {
		took(t, limiter, limit, 6)
		for _, lowered := range []int{6, 5, 1} {
			remains(t, limiter, withMax(limit, lowered), 0)
			tookNone(t, limiter, withMax(limit, lowered), 1)
		}
		remains(t, limiter, limit, 4) // what was used is kept, when it is raised again
		now.pass(6*time.Minute + time.Minute/32)
		took(t, limiter, withMax(limit, 1), 1)
	})
}

// Processes of two releases disagreed on the limit, and the first to be asked decided for all; or
// each change gave a full limit anew. A slower bucket does not count what passes by a faster one:
// it holds for its own calls, and the faster one for all.
func TestProcessesThatDisagreeMintNothing(t *testing.T) {
	eachAlgorithm(t, 10, func(t *testing.T, limiter *core.Limiter, _ *wallClock, limit core.Limit) {
		old, admitted, byOld := withMax(limit, 4), 0, 0
		for range 30 {
			for _, of := range []core.Limit{old, limit} {
				d, err := limiter.MustCounter("n", of).Allow(background, "user:a")
				if err != nil {
					t.Fatal(err)
				}
				if d.Allowed {
					admitted++
				}
				if d.Allowed && of == old {
					byOld++
				}
				counted := admitted
				if of == old && of.Algorithm == core.TokenBucket {
					counted = byOld
				}
				if want := counted <= of.Max && d.Allowed || counted >= of.Max && !d.Allowed; !want {
					t.Fatalf("call after %d by %v: %+v", admitted, of, d)
				}
			}
		}
		if admitted != 10 {
			t.Errorf("%d admitted at one moment by limits of 4 and 10", admitted)
		}
	})
}
