package core_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/accesslimit/accesslimit/core"
)

// inFakeTime runs a test whose waits take no real time, with a limiter that counts in this process.
func inFakeTime(t *testing.T, test func(t *testing.T, limiter *core.Limiter)) {
	synctest.Test(t, func(t *testing.T) { test(t, newLimiter(t, core.Options{})) })
}

// wantTurn reserves a permit and checks how long until its turn.
func wantTurn(t testing.TB, limiter *core.Limiter, limit core.Limit, want time.Duration) core.Decision {
	t.Helper()
	d, err := limiter.MustPacer("n", limit).Reserve(background, "s", 1)
	if err != nil || !d.Allowed || d.Wait != want {
		t.Fatalf("%+v, %v; want a turn in %v", d, err, want)
	}
	return d
}

// Without a deadline Acquire waits for a minute at most.
func TestAcquireWaitsForAMinuteAtMost(t *testing.T) {
	inFakeTime(t, func(t *testing.T, limiter *core.Limiter) {
		limit := core.PerMinute(1).Bucket(1)
		wantTurn(t, limiter, limit, 0)
		start := time.Now()
		if d, err := limiter.MustPacer("n", limit).Acquire(background, "s", 1); err != nil || !d.Allowed || time.Since(start) != time.Minute {
			t.Errorf("after %v: %+v, %v", time.Since(start), d, err)
		}
		wantTurn(t, limiter, limit, time.Minute)
		if d, err := limiter.MustPacer("n", limit).Acquire(background, "s", 1); err != nil || d.Allowed || d.RetryAfter != time.Minute {
			t.Errorf("%+v, %v", d, err)
		}
		patient, cancel := context.WithTimeout(background, 2*time.Minute+time.Second)
		defer cancel()
		start = time.Now()
		if d, err := limiter.MustPacer("n", limit).Acquire(patient, "s", 1); err != nil || !d.Allowed || time.Since(start) != 2*time.Minute {
			t.Errorf("with a later deadline, after %v: %+v, %v", time.Since(start), d, err)
		}
	})
}
