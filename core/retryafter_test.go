package core_test

import (
	"errors"
	"math"
	"testing"
	"time"

	"github.com/accesslimit/accesslimit/core"
)

// A call for twenty permits of a bucket of ten was always told to try again in a second.
func TestCostThatNeverFitsHasNoRetryAfter(t *testing.T) {
	eachAlgorithm(t, 10, func(t *testing.T, limiter *core.Limiter, _ *wallClock, limit core.Limit) {
		for _, n := range []int{11, 20, math.MaxInt} {
			if d, err := limiter.MustCounter("n", limit).AllowN(background, "user:a", n); !errors.Is(err, core.ErrCostExceedsLimit) || d.Allowed || d.RetryAfter != 0 {
				t.Errorf("%d of %v: %+v, %v", n, limit, d, err)
			}
		}
		remains(t, limiter, limit, 10)
	})
}

// A cost was added before it was found to be too much, and stayed: a refused call used up the
// window.
func TestRefusedCostIsNotCharged(t *testing.T) {
	eachAlgorithm(t, 10, func(t *testing.T, limiter *core.Limiter, _ *wallClock, limit core.Limit) {
		took(t, limiter, limit, 9)
		before := tookNone(t, limiter, limit, 10)
		for range 5 {
			if d := tookNone(t, limiter, limit, 10); d.Remaining != 1 || d.ResetAfter != before.ResetAfter {
				t.Errorf("refused again: %+v, before it %+v", d, before)
			}
		}
		took(t, limiter, limit, 1)
	})
}

// A bucket that refused only when it was empty let a call of three pass with two permits left, and
// went into debt.
func TestCostAboveTheRestIsRefused(t *testing.T) {
	eachAlgorithm(t, 5, func(t *testing.T, limiter *core.Limiter, _ *wallClock, limit core.Limit) {
		took(t, limiter, limit, 3)
		tookNone(t, limiter, limit, 3)
		took(t, limiter, limit, 1)
		took(t, limiter, limit, 1)
		for range 3 {
			if d := tookNone(t, limiter, limit, 1); d.Remaining != 0 {
				t.Errorf("in debt: %+v", d)
			}
		}
	})
}

// Calls that cost more than one were kept as one entry, or with the cost of the first.
func TestVaryingCostsAddUp(t *testing.T) {
	eachAlgorithm(t, 20, func(t *testing.T, limiter *core.Limiter, now *wallClock, limit core.Limit) {
		left := 20
		for _, cost := range []int{4, 3, 2, 1, 10} {
			left -= cost
			if d := took(t, limiter, limit, cost); d.Remaining != left {
				t.Errorf("after a call of %d: %d left, want %d", cost, d.Remaining, left)
			}
			now.pass(time.Microsecond)
		}
		tookNone(t, limiter, limit, 1)
	})
}

// A refused caller was always told to wait for the whole window, or was given a time at which it
// was refused again.
func TestWaitIsNotTheWholeWindow(t *testing.T) {
	eachAlgorithm(t, 4, func(t *testing.T, limiter *core.Limiter, now *wallClock, limit core.Limit) {
		took(t, limiter, limit, 2)
		now.pass(40 * time.Second)
		took(t, limiter, limit, 2)
		now.pass(10 * time.Second)
		d := tookNone(t, limiter, limit, 3) // a bucket was full again before the second two
		want := map[core.Algorithm]time.Duration{
			core.SlidingWindow: 51_250 * time.Millisecond, core.SlidingLog: 50 * time.Second, core.FixedWindow: 10 * time.Second,
			core.CalendarWindow: 10 * time.Second, core.TokenBucket: 5 * time.Second,
		}[limit.Algorithm]
		if d.RetryAfter != want {
			t.Errorf("three of four: wait %v, want %v", d.RetryAfter, want)
		}
		now.pass(d.RetryAfter - time.Microsecond)
		tookNone(t, limiter, limit, 3)
		now.pass(time.Microsecond)
		took(t, limiter, limit, 3)
	})
}
