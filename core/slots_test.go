package core_test

import (
	"context"
	"errors"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/internal/logtest"
	"github.com/accesslimit/accesslimit/internal/redistest"
)

// hold takes a slot, which must be free.
func hold(t testing.TB, limiter *core.Limiter, subject string, limit core.Limit) (release func()) {
	t.Helper()
	release, d, err := holdBy(limiter, background, "n", subject, limit)
	if err != nil || !d.Allowed {
		t.Fatalf("Hold: %+v, %v", d, err)
	}
	return release
}

func TestHoldTakesASlotUntilItIsReleased(t *testing.T) {
	onBothEngines(t, func(t *testing.T, options core.Options, source core.Source) {
		var heard decisions
		options.OnDecision = heard.note
		limiter := newLimiter(t, options)
		two := core.InFlight(2)
		first := hold(t, limiter, "s", two)
		second := hold(t, limiter, "s", two)
		refused, d, err := holdBy(limiter, background, "n", "s", two)
		if err != nil || d.Allowed || d.Reason != core.LimitExceeded || d.Remaining != 0 || d.Source != source || d.Limit != two {
			t.Errorf("%+v, %v", d, err)
		}
		if d.RetryAfter <= 0 || d.RetryAfter > two.Window {
			t.Errorf("RetryAfter is %v", d.RetryAfter)
		}
		if last := heard.last(t, 3); last.Allowed {
			t.Errorf("OnDecision received %+v", last)
		}
		refused() // nothing was taken, so no slot is given back
		wantLeft(t, limiter, "n", "s", two, 0)
		wantLeft(t, limiter, "n", "other", two, 2)

		first()
		wantLeft(t, limiter, "n", "s", two, 1)
		first() // this does not free the slot of the second
		wantLeft(t, limiter, "n", "s", two, 1)
		hold(t, limiter, "s", two)()
		second()
		wantLeft(t, limiter, "n", "s", two, 2)
	})
}

// If a holder's slot was forgotten, releasing it frees no other slot.
func TestReleaseOfAForgottenSlot(t *testing.T) {
	onBothEngines(t, func(t *testing.T, options core.Options, _ core.Source) {
		limiter := newLimiter(t, options)
		one := core.InFlight(1)
		forgotten := hold(t, limiter, "s", one)
		if _, err := resetOf(limiter, background, "n", "s", one); err != nil {
			t.Fatal(err)
		}
		release := hold(t, limiter, "s", one)
		forgotten()
		wantLeft(t, limiter, "n", "s", one, 0)
		release()
		wantLeft(t, limiter, "n", "s", one, 1)
	})
}

func TestWrongHolds(t *testing.T) {
	one := core.InFlight(1)
	short := core.Limit{Max: 1, Window: time.Second - time.Microsecond, Algorithm: core.Concurrency}
	for _, test := range []struct {
		name                      string
		counter, subject          string
		limit                     core.Limit
		ruleOfError, field, value string
	}{
		{"no name", "", "s", one, "", "name", ""},
		{"no subject", "n", "", one, "n", "subject", ""},
		{"no slots", "n", "s", core.InFlight(0), "n", "Max", "0"},
		{"too many slots", "n", "s", core.InFlight(10_001), "n", "Max", "10001"},
		{"too short to be renewed", "n", "s", short, "n", "Window", "999.999ms"},
	} {
		t.Run(test.name, func(t *testing.T) {
			slots, err := newLimiter(t, core.Options{}).Slots(test.counter, test.limit.Max)
			if err != nil {
				wantRuleError(t, err, test.ruleOfError, test.field, test.value)
				return
			}
			release, d, err := slots.LostAfter(test.limit.Window).Hold(background, test.subject)
			wantRuleError(t, err, test.ruleOfError, test.field, test.value)
			if d.Allowed || d.Reason != "" {
				t.Errorf("beside the error: %+v", d)
			}
			release()
		})
	}
}

func TestHoldWithoutAnAnswer(t *testing.T) {
	ended, cancel := context.WithCancel(background)
	cancel()
	onBothEngines(t, func(t *testing.T, options core.Options, _ core.Source) {
		limiter := newLimiter(t, options)
		release, _, err := limiter.MustSlots("n", 1).Hold(ended, "s")
		if !errors.Is(err, context.Canceled) || errors.Is(err, core.ErrStore) {
			t.Errorf("%v, want the context's error", err)
		}
		release()
		wantLeft(t, limiter, "n", "s", core.InFlight(1), 1)
	})
	release, d, err := newLimiter(t, deadRedis(t)).MustSlots("n", 1).Hold(background, "s")
	if !errors.Is(err, core.ErrStore) || d.Allowed {
		t.Errorf("%+v, %v; want ErrStore", d, err)
	}
	release()
}

// The context is only for taking the slot. The slot outlives it.
func TestHoldOutlivesItsContext(t *testing.T) {
	onBothEngines(t, func(t *testing.T, options core.Options, _ core.Source) {
		limiter := newLimiter(t, options)
		ctx, cancel := context.WithCancel(background)
		release, _, err := limiter.MustSlots("n", 1).Hold(ctx, "s")
		if err != nil {
			t.Fatal(err)
		}
		cancel()
		wantLeft(t, limiter, "n", "s", core.InFlight(1), 0)
		release()
		wantLeft(t, limiter, "n", "s", core.InFlight(1), 1)
	})
}

// A slot that may or may not have been taken is given back twice: a call that is still on its way
// may take it after the first time.
func TestASlotThatIsTakenLate(t *testing.T) {
	onBothEngines(t, func(t *testing.T, options core.Options, _ core.Source) {
		limiter := newLimiter(t, options)
		taken := core.TakeLate(limiter)
		if _, _, err := limiter.MustSlots("n", 1).Hold(background, "s"); !errors.Is(err, core.ErrStore) {
			t.Fatalf("%v, want ErrStore", err)
		}
		<-taken
		eventually(t, "the slot is free", func() bool {
			d, err := peek(limiter, background, "n", "s", core.InFlight(1))
			return err == nil && d.Remaining == 1
		})
	})
}

// brief is a slot that is free a second after its holder died.
var brief = core.Limit{Max: 1, Window: time.Second, Algorithm: core.Concurrency}

func TestHeldSlotsAreRenewed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		limiter := newLimiter(t, core.Options{})
		release := hold(t, limiter, "s", brief)
		for range 50 {
			time.Sleep(brief.Window / 4)
			wantLeft(t, limiter, "n", "s", brief, 0)
		}
		release()
		wantLeft(t, limiter, "n", "s", brief, 1)
		time.Sleep(10 * brief.Window)
		wantLeft(t, limiter, "n", "s", brief, 1) // nothing is renewed after the release
	})
}

func TestHeldSlotsAreRenewedInRedis(t *testing.T) {
	t.Parallel() // it waits for real time
	server := redistest.Start(t)
	limiter := newLimiter(t, core.Options{Redis: server.Client(t), Timeout: patient})
	// A busy machine may be a second late.
	long := core.Limit{Max: 1, Window: 1500 * time.Millisecond, Algorithm: core.Concurrency}
	release := hold(t, limiter, "s", long)
	for end := time.Now().Add(long.Window + long.Window/2); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		wantLeft(t, limiter, "n", "s", long, 0)
	}
	release()
	wantLeft(t, limiter, "n", "s", long, 1)
}

// A limiter that was closed renews no slots, as if its process had died.
func TestASlotThatIsNotRenewedIsFreeAfterWindow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		limiter := newLimiter(t, core.Options{})
		hold(t, limiter, "s", brief)
		time.Sleep(brief.Window * 2 / 3) // renewed for the second time
		synctest.Wait()
		limiter.Close()
		d, err := peek(limiter, background, "n", "s", brief)
		if err != nil || d.Allowed || d.RetryAfter != brief.Window {
			t.Errorf("%+v, %v", d, err)
		}
		time.Sleep(d.RetryAfter - time.Microsecond)
		wantLeft(t, limiter, "n", "s", brief, 0)
		time.Sleep(time.Microsecond)
		wantLeft(t, limiter, "n", "s", brief, 1)
	})
}

func TestASlotThatIsNotRenewedIsFreeAfterWindowInRedis(t *testing.T) {
	t.Parallel() // it waits for real time
	server := redistest.Start(t)
	dies := newLimiter(t, core.Options{Redis: server.Client(t), Timeout: patient})
	lives := newLimiter(t, core.Options{Redis: server.Client(t), Timeout: patient})
	start := time.Now()
	hold(t, dies, "s", brief)
	dies.Close()
	eventually(t, "the slot of a dead holder is free", func() bool {
		release, d, err := holdBy(lives, background, "n", "s", brief)
		release()
		return err == nil && d.Allowed
	})
	if held := time.Since(start); held < brief.Window {
		t.Errorf("the slot was free after %v, want %v at least", held, brief.Window)
	}
}

func TestReleaseAfterClose(t *testing.T) {
	onBothEngines(t, func(t *testing.T, options core.Options, _ core.Source) {
		limiter := newLimiter(t, options)
		release := hold(t, limiter, "s", core.InFlight(1))
		limiter.Close()
		wantLeft(t, limiter, "n", "s", core.InFlight(1), 0)
		release()
		release()
		wantLeft(t, limiter, "n", "s", core.InFlight(1), 1)
	})
}

func TestReleaseWithoutRedis(t *testing.T) {
	var log logtest.Log
	server := redistest.Start(t)
	limiter := newLimiter(t, core.Options{Redis: server.Client(t), Logger: log.Logger()})
	release := hold(t, limiter, "s", core.InFlight(1))
	server.Kill()
	release()
	if log.Count("level=WARN", "could not be given back", "error=") != 1 {
		t.Errorf("want one line with the cause, got: %s", log.String())
	}
}

// The second release does not ask Redis.
func TestASecondReleaseDoesNothing(t *testing.T) {
	var log logtest.Log
	server := redistest.Start(t)
	limiter := newLimiter(t, core.Options{Redis: server.Client(t), Timeout: patient / 20, Logger: log.Logger()})
	release := hold(t, limiter, "s", core.InFlight(1))
	release()
	server.Kill()
	release()
	if log.Count("level=WARN") != 0 {
		t.Errorf("logged: %s", log.String())
	}
}

func TestHoldsLeaveNoGoroutine(t *testing.T) {
	onBothEngines(t, func(t *testing.T, options core.Options, _ core.Source) {
		limiter := newLimiter(t, options)
		many := core.Limit{Max: 100, Window: time.Second, Algorithm: core.Concurrency}
		hold(t, limiter, "s", many)() // opens what the client keeps open from now on
		before := runtime.NumGoroutine()
		var held []func()
		for range 50 {
			held = append(held, hold(t, limiter, "s", many))
		}
		time.Sleep(many.Window / 2) // some are being renewed
		for _, release := range held[1:] {
			release()
		}
		limiter.Close()
		eventually(t, "all goroutines ended", func() bool { return runtime.NumGoroutine() <= before })
	})
}
