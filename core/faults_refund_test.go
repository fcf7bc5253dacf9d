package core_test

import (
	"testing"
	"time"

	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/internal/redistest"
)

// gaveBack refunds, whenever that is.
func gaveBack(t testing.TB, limiter *core.Limiter, d core.Decision, n int) {
	t.Helper()
	if err := limiter.Refund(background, d, n); err != nil {
		t.Fatalf("Refund of %d: %v", n, err)
	}
}

// A release raised what was available over the rate, also after what it released had come back by
// itself.
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

// Released permits were lost: the log forgot them, the counter did not.
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

// Refunds of several charges of one microsecond took each other's permits, in a SlidingLog, and the
// last ones found none.
func TestRefundsOfOneMicrosecond(t *testing.T) {
	eachAlgorithm(t, 7, func(t *testing.T, limiter *core.Limiter, _ *wallClock, limit core.Limit) {
		first, second := took(t, limiter, limit, 3), took(t, limiter, limit, 3)
		for i, d := range []core.Decision{first, second, first, second} {
			gaveBack(t, limiter, d, 1+i/2)
		}
		remains(t, limiter, limit, 7)
	})
}

// A refund that frees memory, or needs none, was refused by a Redis whose memory is full.
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

// The used count went below zero when a charge of the window before was given back, and the new
// window let more through.
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
		for want := range 2 { // of holders that renew nothing, as the dead
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
