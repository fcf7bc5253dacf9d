package core_test

import (
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/internal/promise"
	"github.com/accesslimit/accesslimit/internal/redistest"
)

// atOnceBy runs a function in so many goroutines at once and returns how often it returned true.
func atOnceBy(callers int, do func(caller int) bool) (yes int) {
	var all sync.WaitGroup
	var said atomic.Int32
	begin := make(chan struct{})
	for caller := range callers {
		all.Go(func() {
			<-begin
			if do(caller) {
				said.Add(1)
			}
		})
	}
	close(begin)
	all.Wait()
	return int(said.Load())
}

// Limiters that read the count first and raised it afterwards let fifty through at once where 25
// were allowed.
func TestNobodySlipsBetweenTheLookAndTheCharge(t *testing.T) {
	onBothEngines(t, func(t *testing.T, options core.Options, _ core.Source) {
		limiters := []*core.Limiter{newLimiter(t, options), newLimiter(t, options)}
		if options.Redis == nil {
			limiters[1] = limiters[0] // only Redis is shared
		}
		for _, a := range append(promise.Algorithms(), core.Concurrency) {
			limit := core.Limit{Max: 25, Window: 366 * 24 * time.Hour, Algorithm: a}
			admitted := atOnceBy(100, func(caller int) bool {
				limiter := limiters[caller%2]
				if a == core.Concurrency {
					_, d, err := holdBy(limiter, background, "n", "user:a", limit)
					return err == nil && d.Allowed
				}
				d, err := limiter.MustCounter("n", limit).Allow(background, "user:a")
				return err == nil && d.Allowed
			})
			if admitted != 25 {
				t.Errorf("%v: %d of 100 at once admitted, want 25", a, admitted)
			}
		}
	})
}

// Two calls at the same moment were one member of a sorted set, and so counted as one.
func TestTwoCallsInOneMicrosecondAreTwo(t *testing.T) {
	eachAlgorithm(t, 3, func(t *testing.T, limiter *core.Limiter, now *wallClock, limit core.Limit) {
		for left := 2; left >= 0; left-- {
			if d := took(t, limiter, limit, 1); d.Remaining != left {
				t.Errorf("%d left at the same microsecond, want %d", d.Remaining, left)
			}
		}
		tookNone(t, limiter, limit, 1)
	})
	onBothClocks(t, func(t *testing.T, limiter *core.Limiter, _ *wallClock) {
		for want := range 3 {
			if _, d, err := limiter.MustSlots("n", 2).Hold(background, "user:a"); err != nil || d.Allowed != (want < 2) {
				t.Errorf("slot %d at the same microsecond: %+v, %v", want+1, d, err)
			}
		}
	})
}

// An earlier limit was charged although a later one refused: a client that hammered a full minute
// used up its day.
func TestEarlierLimitIsNotChargedWhenALaterRefuses(t *testing.T) {
	onBothEngines(t, func(t *testing.T, options core.Options, _ core.Source) {
		limiter := newLimiter(t, options)
		day := core.Rule{Name: "day", Limit: core.Limit{Max: 10, Window: 24 * time.Hour}.Bucket(0)}
		hour := core.Rule{
			Name:  "hour",
			Limit: core.PerHour(2),
			Also: []core.Limit{
				{Max: 10, Window: 24 * time.Hour, Algorithm: core.SlidingLog}, {Max: 10, Window: 48 * time.Hour, Algorithm: core.FixedWindow},
			},
		}
		guard := newGuard(t, limiter, day, hour)
		for _, want := range []int{200, 200, 429, 429, 429} {
			wantStatus(t, guard, newView("GET", "/"), want)
		}
		const caller = "ip:192.0.2.1"
		wantLeft(t, limiter, "day", caller, core.PerDay(10).Bucket(10), 8)
		wantLeft(t, limiter, "hour", caller, hour.Also[0], 8)
		wantLeft(t, limiter, "hour", caller, hour.Also[1], 8)
	})
}

// Processes that counted locally and synchronized later let twice the limit through, or all calls
// if the wrong process was asked.
func TestAnotherProcessSeesAChargeAtOnce(t *testing.T) {
	client := atWallClock(redistest.Start(t).Client(t))
	one, other := newLimiter(t, core.Options{Redis: client, Timeout: patient}), newLimiter(t, core.Options{Redis: client, Timeout: patient})
	for _, a := range promise.Algorithms() {
		limit := core.Limit{Max: 4, Window: time.Minute, Algorithm: a}
		for left := 3; left >= 0; left -= 2 {
			took(t, one, limit, 1)
			remains(t, other, limit, left)
			took(t, other, limit, 1)
		}
		// They also agree on the reset: peers that each computed a reset of their own never reached
		// it.
		if d := tookNone(t, one, limit, 1); tookNone(t, other, limit, 1).ResetAfter != d.ResetAfter {
			t.Errorf("%v: two processes return different resets at one time", a)
		}
	}
}

// Processes that used their own clocks refilled one bucket by the difference between these clocks.
func TestOnlyTheServersClockCounts(t *testing.T) {
	client := atWallClock(redistest.Start(t).Client(t))
	limiter := newLimiter(t, core.Options{Redis: client, Timeout: patient})
	for _, a := range promise.Algorithms() {
		limit := core.Limit{Max: 3, Window: time.Millisecond, Algorithm: a}
		took(t, limiter, limit, 3)
		time.Sleep(3 * time.Millisecond) // passes here, not there
		tookNone(t, limiter, limit, 1)
		client.now.pass(2 * time.Millisecond)
		took(t, limiter, limit, 3)
	}
	client.before = func(args []any) {
		for _, arg := range args {
			if n, ok := arg.(int64); ok && n > 1_000_000_000 { // the seconds since 1970, or finer
				t.Errorf("a time is sent: %d in %v", n, args[2:])
			}
		}
	}
	for _, a := range promise.Algorithms() {
		took(t, limiter, core.Limit{Max: 3, Window: time.Minute, Algorithm: a}, 1)
	}
}
