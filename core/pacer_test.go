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
	"github.com/accesslimit/accesslimit/internal/redistest"
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

// A large cost is granted as soon as one permit is there, and the next caller waits for it.
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

func TestReserveMoreThanCanEverCome(t *testing.T) {
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

// A caller who would have to wait too long is refused at once, and takes no turn.
func TestATurnThatComesTooLate(t *testing.T) {
	inFakeTime(t, func(t *testing.T, limiter *core.Limiter) {
		wantTurn(t, limiter, slowly, 0)
		wantTurn(t, limiter, slowly, time.Second) // so the next turn comes in two
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
		// 19/3 s, rounded up, less patience.
		if want := 5_333_334 * time.Microsecond; err != nil || d.Allowed || d.RetryAfter != want {
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

// A caller who leaves while waiting gives back only the permits that nobody has reserved after it,
// because the waits of later callers are fixed.
func TestLeavingAcquireGivesBack(t *testing.T) {
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

func TestReserveTakesATurnWithoutWaiting(t *testing.T) {
	var heard decisions
	limiter, clock := atTestTime(t, core.Options{OnDecision: heard.note})
	limit := core.PerSecond(2).Bucket(3)
	for i, wait := range []time.Duration{0, 0, 0, 500, 1000, 1500} {
		d := wantTurn(t, limiter, limit, wait*time.Millisecond)
		if d.Limit != limit || d.Rule != "n" || d.Key != "s" || d.Source != core.FromMemory || d.RetryAfter != 0 || d.Remaining != max(0, 2-i) {
			t.Errorf("%+v", d)
		}
		if h := heard.last(t, i+1); h.Wait != d.Wait {
			t.Errorf("OnDecision received %+v", h)
		}
	}
	clock.add(700 * time.Millisecond)
	wantTurn(t, limiter, limit, 1300*time.Millisecond)
	clock.add(time.Hour)
	wantTurn(t, limiter, limit, 0)
}

// A bucket can be overdrawn only while the next turn lies within a year. A later turn takes no
// permits.
func TestReserveBeyondAYear(t *testing.T) {
	onBothEngines(t, func(t *testing.T, options core.Options, _ core.Source) {
		limiter := newLimiter(t, options)
		limit := core.Limit{Max: 1, Window: 100 * 24 * time.Hour, Algorithm: core.TokenBucket}
		for i := range 4 {
			if d, err := limiter.MustPacer("n", limit).Reserve(background, "s", 1); err != nil || !d.Allowed || d.Wait > time.Duration(i)*limit.Window {
				t.Fatalf("%+v, %v", d, err)
			}
		}
		for range 2 {
			d, err := limiter.MustPacer("n", limit).Reserve(background, "s", 1)
			if err != nil || d.Allowed || d.RetryAfter <= 0 || d.RetryAfter > 34*24*time.Hour {
				t.Errorf("%+v, %v", d, err)
			}
		}
	})
}

func TestRefundOfAReservation(t *testing.T) {
	limiter, _ := atTestTime(t, core.Options{})
	charge(t, limiter, "n", "s", slowly, 1)
	d, err := limiter.MustPacer("n", slowly).Reserve(background, "s", 4)
	if err != nil || d.Wait != time.Second {
		t.Fatal(d, err)
	}
	wantNoRefund(t, limiter, d, 5, "5")
	refund(t, limiter, d, 1)
	refund(t, limiter, d, 3)
	wantNoRefund(t, limiter, d, 1, "1")
	first := wantTurn(t, limiter, slowly, time.Second)
	wantTurn(t, limiter, slowly, 2*time.Second)
	refund(t, limiter, first, 1) // somebody is behind it
	wantTurn(t, limiter, slowly, 3*time.Second)
}

// Two processes on one Redis stand in one queue.
func TestTwoLimitersShareTurns(t *testing.T) {
	server := redistest.Start(t)
	var both [2]*core.Limiter
	for i := range both {
		both[i] = newLimiter(t, core.Options{Redis: server.Client(t), Timeout: patient})
	}
	limit := core.PerMinute(1).Bucket(1)
	start := time.Now()
	for i := range 6 {
		d, err := both[i%2].MustPacer("n", limit).Reserve(background, "s", 1)
		turn := time.Duration(i) * time.Minute
		if err != nil || !d.Allowed || d.Wait > turn || d.Wait < turn-time.Since(start) {
			t.Errorf("turn %d is in %v (%v), want at most %v", i, d.Wait, err, turn)
		}
	}
	d, err := both[0].MustPacer("n", limit).Acquire(background, "s", 1)
	if err != nil || d.Allowed || d.RetryAfter > 5*time.Minute || d.RetryAfter < 5*time.Minute-time.Since(start) {
		t.Errorf("Acquire, which waits for a minute: %+v, %v", d, err)
	}
}

// In real time, all of many concurrent callers get through at the rate, and none before its turn.
func TestAcquireInRealTime(t *testing.T) {
	onBothEngines(t, func(t *testing.T, options core.Options, _ core.Source) {
		limiter := newLimiter(t, options)
		limit := core.Limit{Max: 1, Window: 20 * time.Millisecond, Algorithm: core.TokenBucket}
		start := time.Now()
		for range 6 {
			d, err := limiter.MustPacer("n", limit).Acquire(background, "s", 1)
			if err != nil || !d.Allowed {
				t.Fatalf("%+v, %v", d, err)
			}
		}
		if took := time.Since(start); took < 100*time.Millisecond {
			t.Errorf("six calls at one in 20 ms took %v", took)
		}
	})
}
