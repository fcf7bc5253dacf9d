package core_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/core/internal/failure"
	"github.com/accesslimit/accesslimit/internal/logtest"
	"github.com/accesslimit/accesslimit/internal/redistest"
)

// wantNoRefund checks that a decision gives nothing back, with an error that says so.
func wantNoRefund(t testing.TB, limiter *core.Limiter, d core.Decision, n int, value string) {
	t.Helper()
	wantRuleError(t, limiter.Refund(background, d, n), d.Rule, "n", value)
}

// A bucket that is in debt cannot tell who waits behind a charge, so what a refund does not give back is
// counted as lost. A turn that others wait behind is not lost: their waits already include it.
func TestARefundInDebtIsCountedAsLost(t *testing.T) {
	onBothEngines(t, func(t *testing.T, options core.Options, _ core.Source) {
		limiter := newLimiter(t, options)
		bucket := core.Limit{Max: 1, Window: 24 * time.Hour, Burst: 10, Algorithm: core.TokenBucket}
		wantLost := func(want uint64) {
			t.Helper()
			if n := limiter.Stats().RefundsLost; n != want {
				t.Errorf("%d lost, want %d", n, want)
			}
		}
		pacer := limiter.MustPacer("turns", bucket)
		first, err := pacer.Reserve(background, "s", 10)
		if err == nil {
			_, err = pacer.Reserve(background, "s", 4)
		}
		if err != nil {
			t.Fatal(err)
		}
		refund(t, limiter, first, 10)
		wantLost(0)
		d := charge(t, limiter, "n", "s", bucket, 8)
		if _, err := limiter.MustCounter("n", bucket).Charge(background, "s", 5); err != nil {
			t.Fatal(err)
		}
		refund(t, limiter, d, 7) // 2 come back, as they would before turns
		wantLost(5)
		guard := newGuard(t, limiter, core.Rule{Name: "counted", Limit: bucket, Count: is(200), Cost: cost(8)})
		wantStatus(t, guard, newView("GET", "/"), ok).Run(func() int {
			_, err = limiter.MustCounter("counted", bucket).Charge(background, me, 5)
			return 500
		})
		if err != nil {
			t.Fatal(err)
		}
		wantLost(10)
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

// Giving back an entry from the middle of a log takes LREM. If the user may not call it, nothing is
// given back: neither that entry nor what other counters were charged with it. The log says why.
func TestARefundWithoutLREMChangesNothing(t *testing.T) {
	server := redistest.Start(t)
	admin := server.Client(t)
	var log logtest.Log
	limiter := newLimiter(t, core.Options{Timeout: patient, Logger: log.Logger(), Redis: server.UserWith(t, "~*", "+@all", "-lrem")})
	entries := core.Limit{Max: 50, Window: time.Hour, Algorithm: core.SlidingLog}
	guard := newGuard(t, limiter, core.Rule{
		Name:  "n",
		Limit: core.PerHour(100),
		Also:  []core.Limit{entries},
		Count: func(status int) bool { return status == 200 },
	})
	call := func(handle func() int) { guard.Check(newView("GET", "/")).Run(handle) }
	ok := func() int { return 200 }
	call(ok)
	var before []string
	key := core.CounterKey("accesslimit", "ip:192.0.2.1", "n", entries)
	call(func() int {
		call(ok)
		before = admin.LRange(background, key, 0, -1).Val()
		return 401
	})
	wantLeft(t, limiter, "n", "ip:192.0.2.1", core.PerHour(100), 97)
	wantLeft(t, limiter, "n", "ip:192.0.2.1", entries, 47)
	if after := admin.LRange(background, key, 0, -1).Val(); !slices.Equal(after, before) {
		t.Errorf("the log was %q, and is %q", before, after)
	}
	if log.Count("could not be given back", "level=ERROR", "LREM", failure.RightsPage) != 1 {
		t.Error(log.String())
	}
}

// If the caller's context has ended, the refund can be repeated with another context, because the
// first attempt recorded nothing.
func TestRefundOfAnEndedCaller(t *testing.T) {
	limiter := newLimiter(t, core.Options{})
	d := charge(t, limiter, "n", "s", core.PerHour(3), 2)
	ended, cancel := context.WithCancel(background)
	cancel()
	if err := limiter.Refund(ended, d, 2); !errors.Is(err, context.Canceled) || errors.Is(err, core.ErrStore) {
		t.Errorf("%v, want the context's error", err)
	}
	refund(t, limiter, d, 2)
	wantLeft(t, limiter, "n", "s", core.PerHour(3), 3)
}
