package core_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/accesslimit/accesslimit/core"
)

// A caller who would have to wait too long learns so at once, and takes no turn.
func TestATurnThatComesTooLate(t *testing.T) {
	inFakeTime(t, func(t *testing.T, limiter *core.Limiter) {
		wantTurn(t, limiter, slowly, 0)
		wantTurn(t, limiter, slowly, time.Second) // so the next is in two
		start := time.Now()
		soon, cancel := context.WithTimeout(background, 1500*time.Millisecond)
		defer cancel()
		for name, call := range map[string]func() (core.Decision, error){
			"Acquire": func() (core.Decision, error) { return limiter.MustPacer("n", slowly).Acquire(soon, "s", 1) },
			"TryAcquire": func() (core.Decision, error) {
				return limiter.MustPacer("n", slowly).TryAcquire(background, "s", 1, 1500*time.Millisecond)
			},
			"both, deadline": func() (core.Decision, error) {
				return limiter.MustPacer("n", slowly).TryAcquire(soon, "s", 1, time.Hour)
			},
		} {
			d, err := call()
			if err != nil || d.Allowed || d.Reason != core.LimitExceeded || d.RetryAfter != 500*time.Millisecond {
				t.Errorf("%s: %+v, %v", name, d, err)
			}
			wantNoRefund(t, limiter, d, 1, "1")
		}
		if time.Since(start) != 0 {
			t.Errorf("to be refused took %v", time.Since(start))
		}
		wantTurn(t, limiter, slowly, 2*time.Second)
	})
}

// RetryAfter of TryAcquire is to the microsecond.
func TestRetryAfterOfTryAcquire(t *testing.T) {
	inFakeTime(t, func(t *testing.T, limiter *core.Limiter) {
		limit := core.PerSecond(3).Bucket(2)
		if d, err := limiter.MustPacer("n", limit).Acquire(background, "s", 20); err != nil || !d.Allowed {
			t.Fatal(d, err)
		}
		patience := time.Second
		d, err := limiter.MustPacer("n", limit).TryAcquire(background, "s", 2, patience)
		if want := 5_333_334 * time.Microsecond; err != nil || d.Allowed || d.RetryAfter != want { // 19/3 s, rounded up, less patience
			t.Fatalf("%+v, %v, want to retry after %v", d, err, want)
		}
		time.Sleep(d.RetryAfter - time.Microsecond)
		if d, _ := limiter.MustPacer("n", limit).TryAcquire(background, "s", 2, patience); d.Allowed || d.RetryAfter != time.Microsecond {
			t.Errorf("a microsecond too early: %+v", d)
		}
		time.Sleep(time.Microsecond)
		start := time.Now()
		if d, err := limiter.MustPacer("n", limit).TryAcquire(background, "s", 2, patience); err != nil || !d.Allowed || time.Since(start) != patience {
			t.Errorf("after %v: %+v, %v", time.Since(start), d, err)
		}
	})
}

func TestTryAcquireWithoutPatience(t *testing.T) {
	onBothEngines(t, func(t *testing.T, options core.Options, _ core.Source) {
		limiter := newLimiter(t, options)
		limit := core.PerHour(1).Bucket(2)
		for i, patience := range []time.Duration{0, -time.Hour, 0, -1} {
			d, err := limiter.MustPacer("n", limit).TryAcquire(background, "s", 1, patience)
			if err != nil || d.Allowed != (i < 2) || d.Allowed && d.Wait != 0 || !d.Allowed && d.RetryAfter <= 0 {
				t.Errorf("call %d: %+v, %v", i, d, err)
			}
		}
	})
}

// Without a deadline Acquire waits for a minute, no more.
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

// A caller who leaves while waiting gives back only the permits that nobody has reserved behind it,
// because later callers know their wait.
func TestWhoLeavesTheQueueGivesBack(t *testing.T) {
	for name, test := range map[string]struct {
		behind int           // permits that are reserved behind five of who leaves
		next   time.Duration // when the turn after that is, half a second later
	}{
		"nobody behind":  {0, 500 * time.Millisecond},
		"a few behind":   {2, 4500 * time.Millisecond}, // three of the five are given back
		"as many behind": {5, 10500 * time.Millisecond},
		"more behind":    {7, 12500 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			inFakeTime(t, func(t *testing.T, limiter *core.Limiter) {
				wantTurn(t, limiter, slowly, 0)
				ctx, cancel := context.WithCancel(background)
				left := make(chan error)
				go func() {
					d, err := limiter.MustPacer("n", slowly).Acquire(ctx, "s", 5)
					if d.Allowed || d.Reason != "" {
						t.Errorf("beside the error: %+v", d)
					}
					left <- err
				}()
				synctest.Wait()
				if test.behind > 0 {
					if _, err := limiter.MustPacer("n", slowly).Reserve(background, "s", test.behind); err != nil {
						t.Error(err)
					}
				}
				time.Sleep(500 * time.Millisecond)
				cancel()
				if err := <-left; !errors.Is(err, context.Canceled) || errors.Is(err, core.ErrStore) {
					t.Errorf("%v, want the context's error", err)
				}
				wantTurn(t, limiter, slowly, test.next)
			})
		})
	}
}

// Redis is told in the background, which Close waits for.
func TestWhoLeavesTheQueueByAnyClock(t *testing.T) {
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
