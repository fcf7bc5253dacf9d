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

type waiting = func(ctx context.Context, name, subject string, limit core.Limit, n int) (core.Decision, error)

// waits returns every kind of call that takes a turn.
func waits(limiter *core.Limiter) map[string]waiting {
	return map[string]waiting{
		"Acquire": func(ctx context.Context, name, subject string, limit core.Limit, n int) (d core.Decision, err error) {
			pacer, err := limiter.Pacer(name, limit)
			if err != nil {
				return d, err
			}
			return pacer.Acquire(ctx, subject, n)
		},
		"Reserve": func(ctx context.Context, name, subject string, limit core.Limit, n int) (d core.Decision, err error) {
			pacer, err := limiter.Pacer(name, limit)
			if err != nil {
				return d, err
			}
			return pacer.Reserve(ctx, subject, n)
		},
		"TryAcquire": func(ctx context.Context, name, subject string, limit core.Limit, n int) (d core.Decision, err error) {
			pacer, err := limiter.Pacer(name, limit)
			if err != nil {
				return d, err
			}
			return pacer.TryAcquire(ctx, subject, n, time.Hour)
		},
	}
}

func TestWrongAcquires(t *testing.T) {
	var heard decisions
	limiter := newLimiter(t, core.Options{OnDecision: heard.note})
	for _, test := range []struct {
		name, counter, subject string
		limit                  core.Limit
		n                      int
		rule, field, value     string
	}{
		{"no name", "", "s", slowly, 1, "", "name", ""},
		{"no subject", "n", "", slowly, 1, "n", "subject", ""},
		{"nothing", "n", "s", slowly, 0, "n", "n", "0"},
		{"less", "n", "s", slowly, -1, "n", "n", "-1"},
		{"a window", "n", "s", core.PerSecond(1), 1, "n", "Limit", "1/s"},
		{"slots", "n", "s", core.InFlight(1), 1, "n", "Limit", "1 at once"},
		{"no limit", "n", "s", core.Limit{}, 1, "n", "Max", "0"},
		{"a negative burst", "n", "s", core.PerSecond(1).Bucket(-1), 1, "n", "Burst", "-1"},
	} {
		for name, call := range waits(limiter) {
			t.Run(test.name+"/"+name, func(t *testing.T) {
				d, err := call(background, test.counter, test.subject, test.limit, test.n)
				wantRuleError(t, err, test.rule, test.field, test.value)
				if d.Allowed || d.Reason != "" {
					t.Errorf("beside the error: %+v", d)
				}
			})
		}
	}
	if len(heard.heard) > 0 {
		t.Errorf("OnDecision received %+v", heard.heard)
	}
}

func TestAcquireWithoutAnAnswer(t *testing.T) {
	ended, cancel := context.WithCancel(background)
	cancel()
	late, cancel := context.WithTimeout(background, -1)
	defer cancel()
	onBothEngines(t, func(t *testing.T, options core.Options, _ core.Source) {
		limiter := newLimiter(t, options)
		for name, call := range waits(limiter) {
			for ctx, want := range map[context.Context]error{ended: context.Canceled, late: context.DeadlineExceeded} {
				if d, err := call(ctx, "n", "s", slowly, 1); !errors.Is(err, want) || errors.Is(err, core.ErrStore) || d.Allowed {
					t.Errorf("%s: %+v, %v; want %v", name, d, err, want)
				}
			}
		}
		wantLeft(t, limiter, "n", "s", slowly, 1)
	})
	limiter := newLimiter(t, deadRedis(t))
	for name, call := range waits(limiter) {
		if d, err := call(background, "n", "s", slowly, 1); !errors.Is(err, core.ErrStore) || d.Allowed {
			t.Errorf("%s: %+v, %v; want ErrStore", name, d, err)
		}
	}
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
