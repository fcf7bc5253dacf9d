package core_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/accesslimit/accesslimit/core"
)

// slowly is a bucket of one permit, which comes back in a second.
var slowly = core.PerSecond(1).Bucket(1)

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

// A turn that was counted locally is given back too, though it took less than was asked for.
func TestLeavingAcquireGivesBackALocalTurn(t *testing.T) {
	mails := newLimiter(t, deadRedis(t)).MustPacer("n", core.PerMinute(2).Bucket(4)).WithStorePolicy(core.CountLocally(0.5))
	if d, err := mails.Reserve(background, "s", 2); err != nil || d.Wait != 0 {
		t.Fatalf("%+v, %v", d, err)
	}
	owes := func() time.Duration {
		d, err := mails.Peek(background, "s")
		if err != nil {
			t.Error(err)
		}
		return d.ResetAfter
	}
	ctx, cancel := context.WithTimeout(background, 9*time.Minute)
	defer cancel()
	ended := make(chan error, 1)
	go func() { _, err := mails.Acquire(ctx, "s", 8); ended <- err }()
	eventually(t, "the turn is taken", func() bool { return owes() > 2*time.Minute })
	cancel()
	if err := <-ended; err != context.Canceled {
		t.Error(err)
	}
	eventually(t, "the turn is given back", func() bool { return owes() <= 2*time.Minute })
}

// The permits are given back to Redis in the background, and Close waits for that.
func TestLeavingAcquireInRealTime(t *testing.T) {
	onBothEngines(t, func(t *testing.T, options core.Options, _ core.Source) {
		reserved := make(chan struct{}, 1)
		options.OnDecision = func(context.Context, core.Event) { reserved <- struct{}{} }
		limiter := newLimiter(t, options)
		limit := core.PerHour(2).Bucket(1)
		charge(t, limiter, "n", "s", limit, 1)
		<-reserved
		ctx, cancel := context.WithTimeout(background, time.Hour)
		go func() {
			<-reserved
			cancel()
		}()
		if _, err := limiter.MustPacer("n", limit).Acquire(ctx, "s", 9); !errors.Is(err, context.Canceled) {
			t.Errorf("%v, want the context's error", err)
		}
		limiter.Close()
		d, err := limiter.MustPacer("n", limit).Reserve(background, "s", 1)
		if err != nil || d.Wait > 30*time.Minute || d.Wait < 30*time.Minute-patient {
			t.Errorf("%+v, %v; want the turn that was left", d, err)
		}
	})
}
