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

// A Decision is a value: permits that one copy gave back cannot be given back by another.
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

// A refund of a call in the last window adds nothing to this window.
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

// Reset reports false for a bucket, a log or slots of which everything was given back.
func TestResetAfterARefund(t *testing.T) {
	onBothEngines(t, func(t *testing.T, options core.Options, _ core.Source) {
		limiter := newLimiter(t, options)
		log, slot, bucket := core.PerHour(3).Log(), core.InFlight(2), core.PerHour(3).Bucket(3)
		for want := range 2 { // after a refund, and before one
			d := charge(t, limiter, "n", "s", log, 1)
			inBucket := charge(t, limiter, "n", "s", bucket, 1)
			release := hold(t, limiter, "s", slot)
			if want == 0 {
				refund(t, limiter, d, 1)
				refund(t, limiter, inBucket, 1)
				release()
			}
			for _, limit := range []core.Limit{log, slot, bucket} {
				if changed, err := resetOf(limiter, background, "n", "s", limit); err != nil || changed != (want == 1) {
					t.Errorf("Reset of %v: %v, %v; want %v", limit, changed, err, want == 1)
				}
			}
		}
	})
}

// If the caller's context has ended, the refund can be repeated with another context, because the
// first attempt recorded nothing.
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

// A refund without an answer is not repeated, because it may have been carried out.
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

// However many calls overlap, all that they give back to a bucket comes back.
func TestOverlappingRefundsOfABucket(t *testing.T) {
	onBothEngines(t, func(t *testing.T, options core.Options, _ core.Source) {
		const callers, calls, open = 24, 60, 20
		limiter, limit := newLimiter(t, options), core.PerDay(1).Bucket(10_000)
		var all sync.WaitGroup
		for range callers {
			all.Go(func() {
				var charged []core.Decision
				for range calls { // two permits are charged for each, of which one is given back later
					charge(t, limiter, "n", "s", limit, 1)
					charged = append(charged, charge(t, limiter, "n", "s", limit, 1))
					if len(charged) > open {
						refund(t, limiter, charged[0], 1)
						charged = charged[1:]
					}
				}
				for _, d := range charged {
					refund(t, limiter, d, 1)
				}
			})
		}
		all.Wait()
		wantLeft(t, limiter, "n", "s", limit, 10_000-callers*calls)
		if lost := limiter.Stats().RefundsLost; lost != 0 {
			t.Errorf("%d permits were lost", lost)
		}
	})
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

// A charge that is given back in several steps gives back each permit once, whatever others charged
// in between.
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

// If the counter was reset or forgotten after a decision, a refund of that decision takes nothing
// from later charges.
func TestRefundAfterACounterBeganAnew(t *testing.T) {
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

var day = core.PerDay(10)

// Each limit of a rule gets the permit back, whether the decision or one of its parts is refunded.
func TestRefundOfSeveralLimits(t *testing.T) {
	onBothEngines(t, func(t *testing.T, options core.Options, _ core.Source) {
		var heard decisions
		options.OnDecision = heard.note
		limiter := newLimiter(t, options)
		guard := newGuard(t, limiter, core.Rule{Name: "n", Seconds: 3600, MaxCount: 4, Also: []core.Limit{day}, Cost: cost(2)})
		left := func(hour, days int) {
			t.Helper()
			wantLeft(t, limiter, "n", "ip:192.0.2.1", core.PerHour(4), hour)
			wantLeft(t, limiter, "n", "ip:192.0.2.1", day, days)
		}
		wantStatus(t, guard, newView("GET", "/"), 200)
		d := heard.last(t, 1)
		left(2, 8)
		refund(t, limiter, d, 1)
		left(3, 9)
		refund(t, limiter, d.All[1], 1)
		left(3, 10)
		wantNoRefund(t, limiter, d.All[1], 1, "1")
		wantNoRefund(t, limiter, d, 1, "1") // one limit has nothing left to give back, so neither gives back
		left(3, 10)
		refund(t, limiter, d.All[0], 1)
		left(4, 10)
	})
}

// A refused call charged nothing, not even the limit that had permits left.
func TestRefundOfARefusedCall(t *testing.T) {
	onBothEngines(t, func(t *testing.T, options core.Options, _ core.Source) {
		var heard decisions
		options.OnDecision, options.Identify = heard.note, whoSays
		limiter := newLimiter(t, options)
		guard := newGuard(t, limiter, core.Rule{Name: "n", Seconds: 3600, MaxCount: 1, Also: []core.Limit{day}})
		wantStatus(t, guard, newView("GET", "/"), 200)
		wantStatus(t, guard, newView("GET", "/"), 429)
		d := heard.last(t, 2)
		for _, d := range append(d.All, d) {
			wantNoRefund(t, limiter, d, 1, "1")
		}
		wantLeft(t, limiter, "n", "ip:192.0.2.1", day, 9)
	})
}

func TestRefundInsideAHandler(t *testing.T) {
	onBothEngines(t, func(t *testing.T, options core.Options, _ core.Source) {
		options.Expose = true
		limiter := newLimiter(t, options)
		guard := newGuard(t, limiter, core.Rule{Limit: core.PerHour(2).Fixed()})
		answer := wantStatus(t, guard, newView("GET", "/users/:id"), 200)
		d, _ := core.DecisionFrom(answer.Context)
		fixed := core.Limit{Max: 2, Window: time.Hour, Algorithm: core.FixedWindow}
		wantLeft(t, limiter, "GET /users/:id", "ip:192.0.2.1", fixed, 1)
		refund(t, limiter, d, 1)
		wantLeft(t, limiter, "GET /users/:id", "ip:192.0.2.1", fixed, 2)
		wantNoRefund(t, limiter, d, 1, "1")
	})
}

// A charge of a rule in DryRun is given back to its own counter, never to that of the live rule of
// the same name.
func TestRefundOfADryRun(t *testing.T) {
	onBothEngines(t, func(t *testing.T, options core.Options, _ core.Source) {
		var heard decisions
		options.OnDecision = heard.note
		limiter := newLimiter(t, options)
		live := core.Rule{Name: "n", Seconds: 3600, MaxCount: 2}
		dry := live
		dry.Mode = core.DryRun
		both := newGuard(t, limiter, live, dry)
		wantStatus(t, both, newView("GET", "/"), 200)
		heard.last(t, 2)
		tried := heard.heard[0]
		refund(t, limiter, tried, 1)
		wantLeft(t, limiter, "n", "ip:192.0.2.1", core.PerHour(2), 1)
		wantNoRefund(t, limiter, tried, 1, "1")

		onlyTried := newGuard(t, limiter, dry)
		wantStatus(t, onlyTried, newView("GET", "/"), 200)
		if d := heard.last(t, 4); d.Source != core.FromNobody {
			t.Errorf("the answer to a call that is only tried: %+v", d)
		}
		if tried := heard.heard[2]; tried.Remaining != 1 {
			t.Errorf("the tried counter has %d left, want 1 of 2: its first call was given back", tried.Remaining)
		}
	})
}

// gaveBack refunds n permits, however late.
func gaveBack(t testing.TB, limiter *core.Limiter, d core.Decision, n int) {
	t.Helper()
	if err := limiter.Refund(background, d, n); err != nil {
		t.Fatalf("Refund of %d: %v", n, err)
	}
}

// A release added permits above the limit, even if those that it released had come back by
// themselves.
func TestRefundNeverLeavesMoreThanWasThere(t *testing.T) {
	for _, later := range []time.Duration{0, time.Second, 23 * time.Second, 40 * time.Second, time.Minute, 62 * time.Second, time.Hour} {
		eachAlgorithm(t, 5, func(t *testing.T, limiter *core.Limiter, now *wallClock, limit core.Limit) {
			refunded, never := later.String(), later.String()+", never charged"
			ask := func(subject string, n int) core.Decision {
				d, err := limiter.MustCounter("n", limit).AllowN(background, subject, n)
				if err != nil {
					t.Fatal(err)
				}
				return d
			}
			ask(never, 3)
			ask(refunded, 3)
			d := ask(refunded, 2)
			now.pass(later)
			if ask(refunded, 2).Allowed { // others may have used what came back
				ask(never, 2)
			}
			gaveBack(t, limiter, d, 2)
			got, want := ask(refunded, 0), ask(never, 0)
			if got.Remaining != want.Remaining || got.ResetAfter != want.ResetAfter {
				t.Errorf("refunded %v later: %d left, all in %v; never charged: %d, %v", later, got.Remaining, got.ResetAfter, want.Remaining, want.ResetAfter)
			}
		})
	}
}

// Released permits were lost: they were removed from the log, and not from the counter.
func TestRefundedPermitsAreNotLost(t *testing.T) {
	eachAlgorithm(t, 5, func(t *testing.T, limiter *core.Limiter, now *wallClock, limit core.Limit) {
		for range 10 {
			first := took(t, limiter, limit, 2)
			now.pass(time.Microsecond)
			second := took(t, limiter, limit, 2)
			now.pass(time.Microsecond)
			third := took(t, limiter, limit, 1)
			tookNone(t, limiter, limit, 1)
			gaveBack(t, limiter, second, 1)
			remains(t, limiter, limit, 1)
			gaveBack(t, limiter, first, 2)
			remains(t, limiter, limit, 3)
			gaveBack(t, limiter, second, 1)
			remains(t, limiter, limit, 4)
			gaveBack(t, limiter, third, 1)
			remains(t, limiter, limit, 5)
		}
	})
}

// In a SlidingLog, refunds of several charges of one microsecond took each other's permits, and the
// last refunds found none.
func TestRefundsOfOneMicrosecond(t *testing.T) {
	eachAlgorithm(t, 7, func(t *testing.T, limiter *core.Limiter, _ *wallClock, limit core.Limit) {
		first, second := took(t, limiter, limit, 3), took(t, limiter, limit, 3)
		for i, d := range []core.Decision{first, second, first, second} {
			gaveBack(t, limiter, d, 1+i/2)
		}
		remains(t, limiter, limit, 7)
	})
}

// A Redis whose memory is full refused a refund that frees memory, or needs none.
func TestALogGivesBackWhenMemoryIsFull(t *testing.T) {
	client := redistest.Start(t).Client(t)
	limiter := newLimiter(t, core.Options{Redis: client, Timeout: patient})
	limit := core.Limit{Max: 10, Window: time.Hour, Algorithm: core.SlidingLog}
	var charged [4]core.Decision
	for i := range charged {
		charged[i] = took(t, limiter, limit, 2)
	}
	if err := client.ConfigSet(background, "maxmemory", "1").Err(); err != nil {
		t.Fatal(err)
	}
	gaveBack(t, limiter, charged[1], 2) // from the middle
	gaveBack(t, limiter, charged[2], 1) // a part
	gaveBack(t, limiter, charged[0], 2) // the oldest
	gaveBack(t, limiter, charged[3], 2) // the newest
	remains(t, limiter, limit, 9)
}

// The count of used permits went below zero when a charge of the window before was given back, and
// the new window let more through.
func TestRefundOfAnEarlierWindowMintsNothing(t *testing.T) {
	eachAlgorithm(t, 5, func(t *testing.T, limiter *core.Limiter, now *wallClock, limit core.Limit) {
		earlier := took(t, limiter, limit, 5)
		now.pass(2 * time.Minute)
		gaveBack(t, limiter, earlier, 1) // before anything is used again
		took(t, limiter, limit, 5)
		gaveBack(t, limiter, earlier, 4) // and after
		tookNone(t, limiter, limit, 1)
	})
}

// Slots of processes that had died were never given back, and after enough crashes nobody got in.
func TestSlotOfADeadHolderIsFree(t *testing.T) {
	onBothClocks(t, func(t *testing.T, limiter *core.Limiter, now *wallClock) {
		for want := range 2 { // of holders that renew nothing, as dead ones
			if _, d, err := limiter.MustSlots("n", 1).Hold(background, "user:a"); err != nil || d.Allowed != (want == 0) {
				t.Fatalf("%+v, %v", d, err)
			}
		}
		now.pass(30*time.Second - time.Microsecond)
		if _, d, err := limiter.MustSlots("n", 1).Hold(background, "user:a"); err != nil || d.RetryAfter != time.Microsecond {
			t.Errorf("before the slot is free: %+v, %v", d, err)
		}
		now.pass(time.Microsecond)
		wantLeft(t, limiter, "n", "user:a", core.InFlight(1), 1)
		if _, d, err := limiter.MustSlots("n", 1).Hold(background, "user:a"); err != nil || !d.Allowed {
			t.Errorf("a whole window after its holder died: %+v, %v", d, err)
		}
	})
}

// A slot that was released twice, or late, was somebody else's by then.
func TestSecondReleaseFreesNobodyElsesSlot(t *testing.T) {
	onBothClocks(t, func(t *testing.T, limiter *core.Limiter, now *wallClock) {
		limit := core.InFlight(1)
		first, _, err := holdBy(limiter, background, "n", "user:a", limit)
		if err != nil {
			t.Fatal(err)
		}
		now.pass(30 * time.Second) // it was not renewed, and is free
		for range 2 {
			second, d, err := holdBy(limiter, background, "n", "user:a", limit)
			if err != nil || !d.Allowed {
				t.Fatalf("%+v, %v", d, err)
			}
			first()
			wantLeft(t, limiter, "n", "user:a", limit, 0)
			second()
			wantLeft(t, limiter, "n", "user:a", limit, 1)
		}
	})
}
