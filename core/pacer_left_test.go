package core_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/internal/limitertest"
	"github.com/accesslimit/accesslimit/internal/redistest"
)

// slowBucket is a bucket whose next permit comes long after a test.
var slowBucket = core.PerHour(1).Bucket(50)

// waitInLine uses up the burst, and makes callers wait for a turn until leave makes them leave. It
// returns when all of them wait.
func waitInLine(t *testing.T, waiters int, pacers ...core.Pacer) (leave func()) {
	t.Helper()
	if d, err := pacers[0].Reserve(background, "s", slowBucket.Burst); err != nil || d.Wait > 0 {
		t.Fatalf("%+v, %v", d, err)
	}
	ctx, cancel := context.WithTimeout(background, 1000*time.Hour)
	var group sync.WaitGroup
	for i := range waiters {
		group.Go(func() {
			if d, err := pacers[i%len(pacers)].Acquire(ctx, "s", 1); err != context.Canceled {
				t.Errorf("%+v, %v", d, err)
			}
		})
	}
	wantUsed(t, pacers[0], slowBucket.Burst+waiters)
	return func() {
		cancel()
		group.Wait()
	}
}

// wantUsed waits until so many permits are used.
func wantUsed(t *testing.T, pacer core.Pacer, want int) {
	t.Helper()
	limitertest.Eventually(t, "permits are used", func() bool {
		d, err := pacer.Peek(background, "s")
		return err == nil && int(d.ResetAfter/time.Hour) == want-1 // a little has come back
	})
}

// reserveAt reserves a turn, and checks that it comes after so many hours.
func reserveAt(t *testing.T, pacer core.Pacer, hours int) core.Decision {
	t.Helper()
	d, err := pacer.Reserve(background, "s", 1)
	if err != nil || int(d.Wait/time.Hour) != hours-1 {
		t.Errorf("the turn comes after %v, want %d h: %v", d.Wait, hours, err)
	}
	return d
}

// When all who waited have left, in whatever order, the next call is as early as if they had never
// come. While somebody waits behind them, nobody comes before that.
func TestCallersWhoHaveLeftKeepNobodyWaiting(t *testing.T) {
	onBothEngines(t, func(t *testing.T, options core.Options, _ core.Source) {
		options.Timeout = patient
		limiter := newLimiter(t, options)
		pacer := limiter.MustPacer("n", slowBucket)
		const waiters = 80
		leave := waitInLine(t, waiters, pacer)
		last := reserveAt(t, pacer, waiters+1)
		leave()
		next := reserveAt(t, pacer, waiters+2)
		refund(t, limiter, last, 1) // stays, because of the next
		refund(t, limiter, next, 1)
		wantUsed(t, pacer, slowBucket.Burst)
		reserveAt(t, pacer, 1)
	})
}

// A caller who leaves while Redis is asked for a turn gets its error at once, and the turn that
// Redis grants comes back.
func TestACallerWhoLeavesDuringTheReservation(t *testing.T) {
	limiter := newLimiter(t, core.Options{Redis: redistest.Start(t).Client(t), Timeout: patient})
	pacer := limiter.MustPacer("n", slowBucket)
	if _, err := pacer.Reserve(background, "s", slowBucket.Burst); err != nil {
		t.Fatal(err)
	}
	granted, answer := core.AnswerLate(limiter)
	ctx, leave := context.WithTimeout(background, 1000*time.Hour)
	left := make(chan error)
	go func() {
		_, err := pacer.Acquire(ctx, "s", 1)
		left <- err
	}()
	<-granted
	leave()
	if err := <-left; err != context.Canceled {
		t.Errorf("Acquire: %v", err)
	}
	answer()
	wantUsed(t, pacer, slowBucket.Burst)
}

// Callers of several processes stand in one line. Each process gives back its turns when those of
// the others are back.
func TestCallersOfSeveralProcessesLeave(t *testing.T) {
	server := redistest.Start(t)
	var pacers []core.Pacer
	for range 3 {
		limiter := newLimiter(t, core.Options{Redis: server.Client(t), Timeout: patient})
		pacers = append(pacers, limiter.MustPacer("n", slowBucket))
	}
	waitInLine(t, 12, pacers...)()
	wantUsed(t, pacers[0], slowBucket.Burst)
}
