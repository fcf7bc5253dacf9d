package core_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/accesslimit/accesslimit/core"
)

// slowly is a bucket of one permit, which comes back in a second.
var slowly = core.PerSecond(1).Bucket(1)

// inFakeTime runs a test whose waits take no time, with a limiter of this process.
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

func TestCallersTakeTurns(t *testing.T) {
	inFakeTime(t, func(t *testing.T, limiter *core.Limiter) {
		start := time.Now()
		var mu sync.Mutex
		var order []int
		var at []time.Duration
		var all sync.WaitGroup
		for i := range 5 {
			all.Go(func() {
				d, err := limiter.MustPacer("n", slowly).Acquire(background, "s", 1)
				if err != nil || !d.Allowed || d.Reason != core.Allowed || d.Wait != 0 {
					t.Errorf("caller %d: %+v, %v", i, d, err)
				}
				mu.Lock()
				defer mu.Unlock()
				order, at = append(order, i), append(at, time.Since(start))
			})
			synctest.Wait() // it has taken its turn
		}
		all.Wait()
		if !slices.Equal(order, []int{0, 1, 2, 3, 4}) || at[0] != 0 || at[4] != 4*time.Second {
			t.Errorf("in order %v at %v", order, at)
		}
		if d, err := limiter.MustPacer("n", slowly).Acquire(background, "other", 1); err != nil || d.Wait != 0 {
			t.Errorf("another subject: %+v, %v", d, err)
		}
	})
}

// A large cost is granted as soon as one permit is there, and who comes next pays for it.
func TestALargeCostIsGrantedAtOnceAndTheNextPays(t *testing.T) {
	inFakeTime(t, func(t *testing.T, limiter *core.Limiter) {
		limit := core.PerSecond(10).Bucket(20)
		d, err := limiter.MustPacer("n", limit).Acquire(background, "s", 100) // ten times Max
		if err != nil || d.Wait != 0 || d.Remaining != 0 || d.ResetAfter != 10*time.Second {
			t.Errorf("%+v, %v", d, err)
		}
		if d, _ := limiter.MustCounter("n", limit).Allow(background, "s"); d.Allowed || d.RetryAfter != 8100*time.Millisecond {
			t.Errorf("before the debt is paid: %+v", d)
		}
		start := time.Now()
		d, err = limiter.MustPacer("n", limit).Acquire(background, "s", 100)
		if err != nil || !d.Allowed || time.Since(start) != 8100*time.Millisecond {
			t.Errorf("after %v: %+v, %v", time.Since(start), d, err)
		}
	})
}

func TestMoreThanCanEverCome(t *testing.T) {
	onBothEngines(t, func(t *testing.T, options core.Options, _ core.Source) {
		limiter := newLimiter(t, options)
		for limit, most := range map[core.Limit]int{core.PerHour(3).Bucket(5): 30, core.PerHour(3).Bucket(500): 500} {
			for _, call := range waits(limiter) {
				d, err := call(background, "n", "s", limit, most+1)
				if !errors.Is(err, core.ErrCostExceedsLimit) || d.Allowed || d.Reason != "" {
					t.Errorf("%d of %v: %+v, %v", most+1, limit, d, err)
				}
				wantLeft(t, limiter, "n", "s", limit, limit.Burst)
			}
			if d, err := limiter.MustPacer("n", limit).Acquire(background, "s", most); err != nil || !d.Allowed {
				t.Errorf("%d of %v: %+v, %v", most, limit, d, err)
			}
			if _, err := resetOf(limiter, background, "n", "s", limit); err != nil {
				t.Fatal(err)
			}
		}
	})
}

type waiting = func(ctx context.Context, name, subject string, limit core.Limit, n int) (core.Decision, error)

// waits is every call that takes a turn.
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
		t.Errorf("OnDecision heard %+v", heard.heard)
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
