package core_test

import (
	"testing"
	"time"

	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/core/operate"
	"github.com/accesslimit/accesslimit/internal/promise"
	"github.com/accesslimit/accesslimit/internal/redistest"
)

// Limiters made a counter in one step and gave it a time to live in another, or only if a number
// equalled a text. Some counters stayed for ever: keys leaked, and their callers were refused for
// good.
func TestEveryKeyHasATimeToLive(t *testing.T) {
	server := redistest.Start(t)
	client := server.Client(t)
	limiter := newLimiter(t, core.Options{Redis: client, Timeout: patient})
	wantAllToDie := func(after string, keys int) {
		t.Helper()
		all := counterKeys(client)
		for _, key := range all {
			if left := client.PTTL(background, key).Val(); left <= 0 || left > 2*time.Hour+time.Millisecond {
				t.Errorf("after %s: %s lives for %v", after, key, left)
			}
		}
		if len(all) != keys {
			t.Errorf("after %s: %d keys, want %d", after, len(all), keys)
		}
	}
	for _, a := range promise.Algorithms() {
		limit := core.Limit{Max: 5, Window: time.Hour, Algorithm: a}
		d := took(t, limiter, limit, 2)
		wantAllToDie("a charge", 1)
		if err := limiter.Refund(background, d, 1); err != nil {
			t.Fatal(err)
		}
		wantAllToDie("a refund", 1)
		took(t, limiter, limit, 4)
		tookNone(t, limiter, limit, 1)
		wantAllToDie("a refusal", 1)
		if _, err := resetOf(limiter, background, "n", "user:a", limit); err != nil {
			t.Fatal(err)
		}
	}
	release, _, err := limiter.MustSlots("n", 1).Hold(background, "user:a")
	if err != nil {
		t.Fatal(err)
	}
	wantAllToDie("a slot was taken", 1)
	release()
	if _, err := operate.New(limiter).Ban(background, "n", "user:a", time.Hour); err != nil {
		t.Fatal(err)
	}
	if _, err := limiter.MustPacer("n", core.PerMinute(1).Bucket(1)).Reserve(background, "user:a", 3); err != nil {
		t.Fatal(err)
	}
	wantAllToDie("a ban, its note and a reservation", 3)
}

// A counter that had lost its time to live (through a copy, a PERSIST, an old release) stayed at
// its limit for ever.
func TestKeyWithoutATimeToLiveBlocksNobody(t *testing.T) {
	client := atWallClock(redistest.Start(t).Client(t))
	limiter := newLimiter(t, core.Options{Redis: client, Timeout: patient})
	for _, a := range promise.Algorithms() {
		limit := core.Limit{Max: 5, Window: time.Minute, Algorithm: a}
		took(t, limiter, limit, 5)
		key := core.CounterKey("accesslimit", "user:a", "n", limit)
		if !client.Persist(background, key).Val() {
			t.Fatalf("%v: there is no key %s", a, key)
		}
		client.now.pass(2 * time.Minute)
		took(t, limiter, limit, 5)
		if left := client.PTTL(background, key).Val(); left <= 0 {
			t.Errorf("%v: the key lives for ever after it was written again", a)
		}
	}
}

// An expiry of ten seconds, whatever the limit, forgot debts that last longer.
func TestExpiryDoesNotForgetDebts(t *testing.T) {
	onBothClocks(t, func(t *testing.T, limiter *core.Limiter, now *wallClock) {
		bucket := core.PerMinute(1).Bucket(1)
		if _, err := limiter.MustPacer("n", bucket).Reserve(background, "user:a", 10); err != nil {
			t.Fatal(err)
		}
		for minute := range 9 {
			now.pass(time.Minute)
			if d := tookNone(t, limiter, bucket, 1); d.RetryAfter != time.Duration(9-minute)*time.Minute {
				t.Fatalf("%d minutes after ten were taken of one a minute: %v to go", minute+1, d.RetryAfter)
			}
		}
		now.pass(time.Minute)
		took(t, limiter, bucket, 1)
	})
}

// An expiry in whole seconds, rounded down, was 0 for short windows: the key was gone at once, and
// nothing was limited.
func TestWindowsUnderASecondLimit(t *testing.T) {
	for _, window := range []time.Duration{time.Millisecond, 7 * time.Millisecond, 500 * time.Millisecond, 999 * time.Millisecond} {
		onBothClocks(t, func(t *testing.T, limiter *core.Limiter, now *wallClock) {
			for _, a := range promise.Algorithms() {
				limit := core.Limit{Max: 2, Window: window, Algorithm: a}
				for range 2 {
					took(t, limiter, limit, 1)
				}
				now.pass(window/2 - time.Microsecond)
				if a == core.TokenBucket { // one permit of it has come back at half of the window
					tookNone(t, limiter, limit, 1)
				} else {
					tookNone(t, limiter, limit, 2)
				}
				now.Store(in2065)
			}
		})
	}
}

// For a bucket smaller than its refill in a second (100 a second, burst 10), an expiry of twice
// burst/rate was rounded down to zero. Each call was an error, or nothing was kept and everybody
// was let through.
func TestSmallBucketIsKept(t *testing.T) {
	for bucket, next := range map[core.Limit]time.Duration{
		core.PerSecond(100).Bucket(10):      10 * time.Millisecond,
		core.PerSecond(3).Bucket(1):         333_334 * time.Microsecond,
		core.PerSecond(1_000_000).Bucket(1): time.Microsecond,
	} {
		onBothClocks(t, func(t *testing.T, limiter *core.Limiter, now *wallClock) {
			for range bucket.Burst {
				took(t, limiter, bucket, 1)
			}
			if d := tookNone(t, limiter, bucket, 1); d.RetryAfter != next {
				t.Errorf("%v: the next comes in %v, want %v", bucket, d.RetryAfter, next)
			}
		})
	}
}

// A clean-up of expired entries dropped entries that still counted.
func TestExpiryDropsNothingThatCounts(t *testing.T) {
	onBothClocks(t, func(t *testing.T, limiter *core.Limiter, now *wallClock) {
		for a, want := range map[core.Algorithm]int{core.SlidingWindow: 5, core.SlidingLog: 5, core.TokenBucket: 7} {
			now.Store(in2065)
			limit := core.Limit{Max: 10, Window: time.Minute, Algorithm: a}
			took(t, limiter, limit, 5)
			now.pass(45 * time.Second)
			took(t, limiter, limit, 5)
			now.pass(17 * time.Second) // the first five are over a minute old, and a sub-window
			remains(t, limiter, limit, want)
			took(t, limiter, limit, want)
			tookNone(t, limiter, limit, 1)
		}
	})
}
