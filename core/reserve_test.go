package core_test

import (
	"testing"
	"time"

	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/internal/redistest"
)

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
			t.Errorf("OnDecision heard %+v", h)
		}
	}
	clock.add(700 * time.Millisecond)
	wantTurn(t, limiter, limit, 1300*time.Millisecond)
	clock.add(time.Hour)
	wantTurn(t, limiter, limit, 0)
}

// A bucket can be overdrawn only for so long as a turn lies within a year; beyond it nothing is
// taken.
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

// In real time: many callers at once get through at the rate, all of them, and none before its
// turn.
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
