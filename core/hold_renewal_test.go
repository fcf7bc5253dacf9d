package core_test

import (
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/internal/redistest"
)

// brief is a slot that is free a second after its holder died.
var brief = core.Limit{Max: 1, Window: time.Second, Algorithm: core.Concurrency}

// eventually waits for what a busy machine may be late with.
func eventually(t testing.TB, what string, is func() bool) {
	t.Helper()
	for end := time.Now().Add(patient); !is(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("after %v still not: %s", patient, what)
		}
	}
}

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
	long := core.Limit{Max: 1, Window: 1500 * time.Millisecond, Algorithm: core.Concurrency} // a busy machine may be a second late
	release := hold(t, limiter, "s", long)
	for end := time.Now().Add(long.Window + long.Window/2); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		wantLeft(t, limiter, "n", "s", long, 0)
	}
	release()
	wantLeft(t, limiter, "n", "s", long, 1)
}

// A limiter that was closed renews no more, as one whose process died.
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

// A renewal that fails is repeated soon: the slot is lost only when none has come through for a
// whole Window.
func TestARenewalThatFailsIsRepeatedSoon(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log logbook
		limiter := newLimiter(t, core.Options{Logger: log.logger()})
		core.BreakRenewals(limiter, 7)
		long := core.Limit{Max: 1, Window: 12 * time.Second, Algorithm: core.Concurrency}
		release := hold(t, limiter, "s", long) // renewed after 4 s, and then each second until it comes through after 11
		time.Sleep(15 * time.Second)
		wantLeft(t, limiter, "n", "s", long, 0)
		release()
		if log.count("level=WARN", "could not be renewed", "out of order") != 1 {
			t.Errorf("want one line with the cause, got: %s", log.text.String())
		}
	})
}

func TestReleaseWithoutRedis(t *testing.T) {
	var log logbook
	server := redistest.Start(t)
	limiter := newLimiter(t, core.Options{Redis: server.Client(t), Timeout: 200 * time.Millisecond, Logger: log.logger()})
	release := hold(t, limiter, "s", core.InFlight(1))
	server.Kill()
	release()
	if log.count("level=WARN", "could not be given back", "error=") != 1 {
		t.Errorf("want one line with the cause, got: %s", log.text.String())
	}
}

// The second release asks nobody anything.
func TestASecondReleaseDoesNothing(t *testing.T) {
	var log logbook
	server := redistest.Start(t)
	limiter := newLimiter(t, core.Options{Redis: server.Client(t), Timeout: patient / 20, Logger: log.logger()})
	release := hold(t, limiter, "s", core.InFlight(1))
	release()
	server.Kill()
	release()
	if log.count("level=WARN") != 0 {
		t.Errorf("logged: %s", log.text.String())
	}
}

func TestHoldsLeaveNoGoroutine(t *testing.T) {
	onBothEngines(t, func(t *testing.T, options core.Options, _ core.Source) {
		limiter := newLimiter(t, options)
		many := core.Limit{Max: 100, Window: time.Second, Algorithm: core.Concurrency}
		hold(t, limiter, "s", many)() // what the client keeps is there from now on
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
