package core_test

import (
	"context"
	"errors"
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
