package core_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/internal/redistest"
)

// wantNoRefund checks that a decision gives nothing back, with an error that says so.
func wantNoRefund(t testing.TB, limiter *core.Limiter, d core.Decision, n int, value string) {
	t.Helper()
	wantRuleError(t, limiter.Refund(background, d, n), d.Rule, "n", value)
}

func refund(t testing.TB, limiter *core.Limiter, d core.Decision, n int) {
	t.Helper()
	if err := limiter.Refund(background, d, n); err != nil {
		t.Fatalf("Refund of %d: %v", n, err)
	}
}

func TestRefundGivesBackWhatWasCharged(t *testing.T) {
	eachLasting(t, 6, func(t *testing.T, limiter *core.Limiter, limit core.Limit) {
		charge(t, limiter, "n", "s", limit, 2)
		d := charge(t, limiter, "n", "s", limit, 3)
		refund(t, limiter, d, 1)
		wantLeft(t, limiter, "n", "s", limit, 2)
		wantNoRefund(t, limiter, d, 3, "3")
		wantLeft(t, limiter, "n", "s", limit, 2)
		refund(t, limiter, d, 2)
		wantLeft(t, limiter, "n", "s", limit, 4)
		wantNoRefund(t, limiter, d, 1, "1")
		wantLeft(t, limiter, "n", "s", limit, 4)
	})
}

// A Decision is a value: what one copy gave back is gone for the others, too.
func TestRefundOfACopy(t *testing.T) {
	limiter := newLimiter(t, core.Options{})
	d := charge(t, limiter, "n", "s", core.PerHour(9), 4)
	charge(t, limiter, "n", "s", core.PerHour(9), 4)
	again := d
	refund(t, limiter, d, 3)
	wantNoRefund(t, limiter, again, 2, "2")
	wantLeft(t, limiter, "n", "s", core.PerHour(9), 4)
}

func TestRefundOfMoreThanWasCharged(t *testing.T) {
	onBothEngines(t, func(t *testing.T, options core.Options, _ core.Source) {
		limiter := newLimiter(t, options)
		limit := core.PerHour(3)
		first := charge(t, limiter, "n", "s", limit, 3)
		wantNoRefund(t, limiter, first, 4, "4")
		wantNoRefund(t, limiter, first, 0, "0")
		wantNoRefund(t, limiter, first, -1, "-1")

		refused, err := limiter.MustCounter("n", limit).Allow(background, "s")
		if err != nil || refused.Allowed {
			t.Fatal(refused, err)
		}
		peeked, _ := peek(limiter, background, "n", "other", limit)
		nothing, _ := limiter.MustCounter("n", limit).AllowN(background, "s", 0)
		unlimited, _ := limiter.MustCounter("n", core.Unlimited).Allow(background, "s")
		release, held, _ := limiter.MustSlots("n", 1).Hold(background, "s")
		defer release()
		for name, d := range map[string]core.Decision{
			"refused": refused, "looked at": peeked, "nothing": nothing, "unlimited": unlimited, "held": held, "zero": {},
		} {
			t.Run(name, func(t *testing.T) { wantNoRefund(t, limiter, d, 1, "1") })
		}
		wantLeft(t, limiter, "n", "s", limit, 0)
		wantLeft(t, limiter, "n", "other", limit, 3)
		wantLeft(t, limiter, "n", "s", core.InFlight(1), 0)
	})
}

// A refund of a call of the last window gives nothing to this one.
func TestRefundAfterTheWindowTurned(t *testing.T) {
	for name, limit := range map[string]core.Limit{
		"sliding":  core.PerHour(6),
		"log":      {Max: 6, Window: time.Hour, Algorithm: core.SlidingLog},
		"fixed":    {Max: 6, Window: time.Hour, Algorithm: core.FixedWindow},
		"calendar": {Max: 6, Window: time.Hour, Algorithm: core.CalendarWindow},
		"day":      core.PerCalendarDay(6, "UTC"),
		"bucket":   core.PerHour(6).Bucket(6),
	} {
		t.Run(name, func(t *testing.T) {
			limiter, clock := atTestTime(t, core.Options{})
			early := charge(t, limiter, "n", "s", limit, 6)
			clock.add(25 * time.Hour)
			charge(t, limiter, "n", "s", limit, 2)
			refund(t, limiter, early, 6)
			wantLeft(t, limiter, "n", "s", limit, 4)
			clock.add(25 * time.Hour)
			wantLeft(t, limiter, "n", "s", limit, 6)
		})
	}
}

// The same on Redis's own clock.
func TestRefundAfterAShortWindow(t *testing.T) {
	options := core.Options{Redis: redistest.Start(t).Client(t), Timeout: patient}
	limiter := newLimiter(t, options)
	short := core.Limit{Max: 3, Window: 50 * time.Millisecond}
	for _, algorithm := range []core.Algorithm{core.SlidingWindow, core.SlidingLog, core.FixedWindow, core.CalendarWindow, core.TokenBucket} {
		limit := short
		limit.Algorithm = algorithm
		d := charge(t, limiter, "n", "s", limit, 3)
		time.Sleep(110 * time.Millisecond)
		refund(t, limiter, d, 3)
		wantLeft(t, limiter, "n", "s", limit, 3)
	}
}

func TestRefundAfterReset(t *testing.T) {
	eachLasting(t, 4, func(t *testing.T, limiter *core.Limiter, limit core.Limit) {
		d := charge(t, limiter, "n", "s", limit, 4)
		if _, err := resetOf(limiter, background, "n", "s", limit); err != nil {
			t.Fatal(err)
		}
		refund(t, limiter, d, 4)
		wantLeft(t, limiter, "n", "s", limit, 4)
	})
}

// A caller who left may still give back with a context of its own, because nothing was noted of the
// first try.
func TestRefundOfAnEndedCaller(t *testing.T) {
	onBothEngines(t, func(t *testing.T, options core.Options, _ core.Source) {
		limiter := newLimiter(t, options)
		d := charge(t, limiter, "n", "s", core.PerHour(3), 2)
		ended, cancel := context.WithCancel(background)
		cancel()
		if err := limiter.Refund(ended, d, 2); !errors.Is(err, context.Canceled) || errors.Is(err, core.ErrStore) {
			t.Errorf("%v, want the context's error", err)
		}
		wantLeft(t, limiter, "n", "s", core.PerHour(3), 1)
		refund(t, limiter, d, 2)
		wantLeft(t, limiter, "n", "s", core.PerHour(3), 3)
	})
}

// Whether a refund that got no answer was carried out is not known, so it is not repeated.
func TestRefundWithoutRedis(t *testing.T) {
	server := redistest.Start(t)
	limiter := newLimiter(t, core.Options{Redis: server.Client(t), Timeout: time.Second})
	d := charge(t, limiter, "n", "s", core.PerHour(3), 2)
	server.Kill()
	if err := limiter.Refund(background, d, 2); !errors.Is(err, core.ErrStore) {
		t.Errorf("%v, want ErrStore", err)
	}
	wantNoRefund(t, limiter, d, 1, "1")
}

func TestRefundsByManyAtOnce(t *testing.T) {
	onBothEngines(t, func(t *testing.T, options core.Options, _ core.Source) {
		limiter := newLimiter(t, options)
		charge(t, limiter, "n", "s", core.PerHour(50), 30)
		d := charge(t, limiter, "n", "s", core.PerHour(50), 20)
		var given atomic.Int64
		var all sync.WaitGroup
		for range 40 {
			all.Go(func() {
				if limiter.Refund(background, d, 1) == nil {
					given.Add(1)
				}
			})
		}
		all.Wait()
		if given.Load() != 20 {
			t.Errorf("%d of 20 permits were given back", given.Load())
		}
		wantLeft(t, limiter, "n", "s", core.PerHour(50), 20)
	})
}

// 65,536 refunds later, what was given back is known still, and so is it after more of them when it
// was asked for in between.
func TestRefundsAreRememberedForLong(t *testing.T) {
	limiter := newLimiter(t, core.Options{})
	const many = 1_000_000
	limit := core.PerHour(many)
	d := charge(t, limiter, "n", "s", limit, 5)
	charge(t, limiter, "n", "s", limit, 5)
	for range 2 {
		refund(t, limiter, d, 2)
		for range core.MaxRefunds - 1 {
			refund(t, limiter, charge(t, limiter, "n", "others", limit, 1), 1)
		}
	}
	wantNoRefund(t, limiter, d, 2, "2")
	refund(t, limiter, d, 1)
	wantNoRefund(t, limiter, d, 1, "1")
	wantLeft(t, limiter, "n", "s", limit, many-5)
}

// However refunds and charges interleave, no more passes at once than the bucket holds.
func TestInterleavedRefundsCreateNothing(t *testing.T) {
	limiter, clock := atTestTime(t, core.Options{})
	limit := core.PerSecond(10).Bucket(10)
	take := func() (taken []core.Decision) {
		for range 100 {
			d, err := limiter.MustCounter("n", limit).Allow(background, "s")
			if err != nil || !d.Allowed {
				return taken
			}
			taken = append(taken, d)
		}
		t.Fatal("a bucket of 10 lets everything pass")
		return nil
	}
	first := take()[:9]
	var second []core.Decision
	for _, d := range first {
		refund(t, limiter, d, 1)
		second = append(second, charge(t, limiter, "n", "s", limit, 1))
	}
	clock.add(900 * time.Millisecond)
	passed := len(take())
	for _, d := range second {
		refund(t, limiter, d, 1)
	}
	if passed += len(take()); passed != 10 {
		t.Errorf("%d passed at once, of a bucket of 10", passed)
	}
}

// Of a charge that is given back in several steps each permit is given back once, wherever others
// charged in between.
func TestRefundInSteps(t *testing.T) {
	limiter, clock := atTestTime(t, core.Options{})
	limit := core.PerSecond(10).Bucket(10)
	d := charge(t, limiter, "n", "s", limit, 6)
	charge(t, limiter, "n", "s", limit, 2)
	refund(t, limiter, d, 2)
	wantLeft(t, limiter, "n", "s", limit, 4)
	clock.add(300 * time.Millisecond) // three of the four that are left have come back
	refund(t, limiter, d, 1)
	wantLeft(t, limiter, "n", "s", limit, 8)
	refund(t, limiter, d, 3)
	wantLeft(t, limiter, "n", "s", limit, 8)
}

// A decision of before a Reset, or of before the counter was forgotten, takes nothing from what was
// charged since.
func TestRefundReachesNoLaterLife(t *testing.T) {
	limiter, clock := atTestTime(t, core.Options{})
	limit := core.PerSecond(10).Bucket(10)
	for name, forget := range map[string]func(){
		"reset":    func() { clock.add(time.Microsecond); _, _ = resetOf(limiter, background, "n", "s", limit) },
		"refilled": func() { clock.add(time.Second) },
		"an hour back, reset": func() {
			clock.add(-time.Hour)
			_, _ = resetOf(limiter, background, "n", "s", limit)
		},
	} {
		early := charge(t, limiter, "n", "s", limit, 8)
		forget()
		charge(t, limiter, "n", "s", limit, 8)
		refund(t, limiter, early, 8)
		if d, err := peek(limiter, background, "n", "s", limit); err != nil || d.Remaining != 2 {
			t.Errorf("%s: %+v, %v, want 2 left", name, d, err)
		}
		_, _ = resetOf(limiter, background, "n", "s", limit)
		clock.add(2 * time.Hour)
	}
}
