package core_test

import (
	"errors"
	"runtime"
	"testing"
	"time"

	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/internal/logtest"
	"github.com/accesslimit/accesslimit/internal/redistest"
)

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
