package core_test

import (
	"testing"
	"time"

	"github.com/accesslimit/accesslimit/core"
)

// A bucket that, refused, saved its refilled tokens but not the time of the refill, was paid the
// same refill once a refusal.
func TestRefusalDoesNotRefillTwice(t *testing.T) {
	onBothClocks(t, func(t *testing.T, limiter *core.Limiter, now *wallClock) {
		bucket := core.PerMinute(6).Bucket(6) // one in ten seconds
		took(t, limiter, bucket, 6)
		for range 9 {
			now.pass(time.Second)
			tookNone(t, limiter, bucket, 1)
		}
		now.pass(time.Second)
		took(t, limiter, bucket, 1)
		tookNone(t, limiter, bucket, 1)
	})
}

// One that, refused, saved the time but not the tokens, never let a client in again that asked
// often.
func TestRefusalDoesNotLoseRefill(t *testing.T) {
	eachAlgorithm(t, 6, func(t *testing.T, limiter *core.Limiter, now *wallClock, limit core.Limit) {
		took(t, limiter, limit, 6)
		opens := tookNone(t, limiter, limit, 1).RetryAfter
		for waited := time.Duration(0); waited < opens-time.Second; waited += time.Second {
			now.pass(time.Second)
			if d := tookNone(t, limiter, limit, 1); d.RetryAfter != opens-waited-time.Second {
				t.Fatalf("after %v of %v another refusal says %v", waited+time.Second, opens, d.RetryAfter)
			}
		}
		now.Store(in2065 + opens.Microseconds())
		took(t, limiter, limit, 1)
	})
}

// Whoever counted refused calls too kept out for ever who hammered.
func TestHammeringKeepsNobodyOut(t *testing.T) {
	eachAlgorithm(t, 3, func(t *testing.T, limiter *core.Limiter, now *wallClock, limit core.Limit) {
		took(t, limiter, limit, 3)
		opens := tookNone(t, limiter, limit, 3).RetryAfter
		for range 100 {
			now.pass(opens / 200)
			tookNone(t, limiter, limit, 3)
		}
		now.Store(in2065 + opens.Microseconds())
		took(t, limiter, limit, 3)
	})
}

// A time in milliseconds, multiplied with a rate per second, refilled a thousand times too fast.
func TestMillisecondsAreNotSeconds(t *testing.T) {
	for _, window := range []time.Duration{time.Second, time.Minute, 2 * time.Hour} {
		onBothClocks(t, func(t *testing.T, limiter *core.Limiter, now *wallClock) {
			bucket := core.Limit{Max: 10, Window: window, Algorithm: core.TokenBucket, Burst: 20_000}
			took(t, limiter, bucket, 20_000)
			now.pass(window / 1000)
			remains(t, limiter, bucket, 0)
			now.pass(window - window/1000)
			remains(t, limiter, bucket, 10)
		})
	}
}

// A refill that was rounded down while its time was set to now lost a fraction with each call, so
// that steady callers got less than their rate.
func TestFractionOfAPermitIsNotLost(t *testing.T) {
	onBothClocks(t, func(t *testing.T, limiter *core.Limiter, now *wallClock) {
		bucket := core.PerSecond(3).Bucket(30)
		took(t, limiter, bucket, 30)
		for range 10 { // a third of a second is no whole number of microseconds
			for range 7 {
				now.pass(time.Second / 10)
				if _, err := limiter.MustCounter("n", bucket).AllowN(background, "user:a", 1); err != nil {
					t.Fatal(err)
				}
			}
		}
		remains(t, limiter, bucket, 0)
		now.pass(10*time.Second - time.Microsecond)
		remains(t, limiter, bucket, 29)
		now.pass(time.Microsecond)
		if d := took(t, limiter, bucket, 30); d.Remaining != 0 || d.ResetAfter != 10*time.Second {
			t.Errorf("full after ten seconds more: %+v", d)
		}
	})
}

// A limiter that kept a total beside its parts saw the two drift apart, and from hour to hour let
// fewer and fewer through.
func TestLimitDoesNotDriftDown(t *testing.T) {
	eachAlgorithm(t, 7, func(t *testing.T, limiter *core.Limiter, now *wallClock, limit core.Limit) {
		const minutes, every = 40, 5 * time.Second
		admitted := 0 // in the last ten minutes
		for i := range int(minutes * time.Minute / every) {
			n := 1 + i%2
			d, err := limiter.MustCounter("n", limit).AllowN(background, "user:a", n)
			if err != nil {
				t.Fatal(err)
			}
			if last := i >= int((minutes-10)*time.Minute/every); last && d.Allowed {
				admitted += n
			}
			now.pass(every)
		}
		if admitted < 9*6 || admitted > 11*7 { // a call of two may find one left
			t.Errorf("%d in the last ten of %d minutes, at %v", admitted, minutes, limit)
		}
	})
}

// A late call with an older time moved the bucket's time back, and the next one was paid the time
// between again.
func TestClockSetBackMintsNothing(t *testing.T) {
	eachAlgorithm(t, 5, func(t *testing.T, limiter *core.Limiter, now *wallClock, limit core.Limit) {
		took(t, limiter, limit, 5)
		for _, back := range []time.Duration{time.Microsecond, time.Second, time.Minute, time.Hour, 24 * time.Hour} {
			now.pass(-back)
			remains(t, limiter, limit, 0)
			tookNone(t, limiter, limit, 1)
		}
	})
}

// A clock set back by an hour blocked for an hour a bucket that kept its time where it was.
func TestClockSetBackAnHourBlocksNobodyForAnHour(t *testing.T) {
	eachAlgorithm(t, 5, func(t *testing.T, limiter *core.Limiter, now *wallClock, limit core.Limit) {
		took(t, limiter, limit, 5)
		now.pass(-time.Hour)
		d := tookNone(t, limiter, limit, 5)
		if longest := time.Minute + time.Minute/32; d.RetryAfter > longest {
			t.Fatalf("blocked for %v after the clock was set back, want at most %v", d.RetryAfter, longest)
		}
		now.pass(d.RetryAfter)
		took(t, limiter, limit, 5)
	})
}
