package core_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/internal/redistest"
)

// A call to a single limit that is counted in this process takes a shorter path than other calls.
// It is decided, counted, reported and given back like them.
func TestCounterOfOneLimitInProcess(t *testing.T) {
	for name, limit := range map[string]core.Limit{
		"sliding": core.PerSecond(5), "bucket": core.PerSecond(5).Bucket(3), "fixed": core.PerSecond(5).Fixed(),
		"aligned": core.PerSecond(5).Aligned(), "log": core.PerSecond(5).Log(), "unlimited": core.Unlimited,
	} {
		t.Run(name, func(t *testing.T) {
			var now atomic.Int64
			seed := rand.Uint64()
			history := func(take func(core.Counter) core.Counter) string {
				var reported decisions
				limiter := newLimiter(t, core.Options{OnDecision: reported.note})
				now.Store(1_800_000_000_000_000)
				core.UseClock(limiter, now.Load)
				counter, random := take(limiter.MustCounter("reply", limit)), rand.New(rand.NewPCG(seed, 0))
				var lines []any
				for range 200 {
					now.Add(random.Int64N(400_000))
					subject := []string{"user:a", "user:{b}", strings.Repeat("c", 99), ""}[random.IntN(4)]
					n := random.IntN(6) - 1
					d, err := counter.AllowN(background, subject, n)
					lines = append(lines, d, fmt.Sprint(err), fmt.Sprint(limiter.Refund(background, d, random.IntN(3))))
				}
				text, err := json.MarshalIndent(append(lines, reported.heard, limiter.Stats()), "", " ")
				return fmt.Sprintf("%s %v", text, err)
			}
			short := history(func(c core.Counter) core.Counter { return c })
			long := history(func(c core.Counter) core.Counter { return c.With(limit) })
			if short != long {
				t.Errorf("seed %d: the histories differ:\n%s\n%s", seed, short, long)
			}
		})
	}
}

// A limit of With that has the counter of a further limit would be charged twice.
func TestWithTheCounterOfAnotherLimit(t *testing.T) {
	onBothEngines(t, func(t *testing.T, options core.Options, _ core.Source) {
		for _, further := range []core.Limit{core.PerHour(10), core.PerHour(10).Bucket(5), core.PerHour(10).Log(), core.PerCalendarDay(10, "UTC")} {
			replies := newLimiter(t, options).MustCounter("reply", core.PerMinute(50), further)
			other := further
			other.Max = 100
			_, err := replies.With(other).Allow(background, "s")
			wantRuleError(t, err, "reply", "Limit", other.String())
			_, _, err = replies.With(other).AllowUpTo(background, "s", 3)
			wantRuleError(t, err, "reply", "Limit", other.String())
			for range 2 {
				if d, err := replies.With(core.PerMinute(60)).Allow(background, "s"); err != nil || !d.Allowed {
					t.Fatalf("%+v, %v", d, err)
				}
			}
			if d, err := replies.With(core.Unlimited).Allow(background, "s"); err != nil || !d.Allowed {
				t.Fatalf("%+v, %v", d, err)
			}
		}
	})
}

// A handle while the store does not answer.
func TestCounterWithStorePolicy(t *testing.T) {
	limiter := newLimiter(t, deadRedis(t))
	counter, bucket := limiter.MustCounter("n", core.PerHour(4)), limiter.MustPacer("b", core.PerHour(4).Bucket(4))
	for _, test := range []struct {
		policy core.StorePolicy
		want   []core.Reason
		source core.Source
	}{
		{core.FailOpen, []core.Reason{core.StoreFailOpen, core.StoreFailOpen, core.StoreFailOpen}, core.FromNobody},
		{core.FailClosed, []core.Reason{core.StoreFailClosed, core.StoreFailClosed, core.StoreFailClosed}, core.FromNobody},
		{core.CountLocally(0.5), []core.Reason{core.Allowed, core.Allowed, core.LimitExceeded}, core.FromLocal},
	} {
		t.Run(test.policy.String(), func(t *testing.T) {
			counter, bucket := counter.WithStorePolicy(test.policy), bucket.WithStorePolicy(test.policy)
			for i, want := range test.want {
				d, err := counter.Allow(background, "s")
				if err != nil || d.Reason != want || d.Source != test.source || d.Allowed != (want == core.Allowed || want == core.StoreFailOpen) {
					t.Errorf("call %d: %+v, %v; want %s", i, d, err, want)
				}
				if d, err = bucket.TryAcquire(background, "s", 1, 0); err != nil || d.Reason != want || d.Source != test.source {
					t.Errorf("turn %d: %+v, %v; want %s", i, d, err, want)
				}
			}
		})
	}
	for _, policy := range []core.StorePolicy{core.CountLocally(0), core.CountLocally(2), core.CountLocally(math.NaN())} {
		_, err := counter.WithStorePolicy(policy).Allow(background, "s")
		wantRuleError(t, err, "n", "StorePolicy", policy.String())
	}
	if _, err := counter.Allow(background, "s"); !errors.Is(err, core.ErrStore) {
		t.Errorf("without a policy: %v", err)
	}
}

// The notes of a log go to the store that counts the calls. Slots are renewed and released in the
// store that took them.
func TestLogAndSlotsWithStorePolicy(t *testing.T) {
	limiter := newLimiter(t, deadRedis(t))
	log, slots := limiter.MustLog("log", core.PerHour(4).Log()), limiter.MustSlots("slots", 4)
	local := core.CountLocally(0.5)
	for _, want := range []core.Reason{core.Allowed, core.Allowed, core.LimitExceeded} {
		if d, err := log.WithStorePolicy(local).Allow(background, "s", "note"); err != nil || d.Reason != want || d.Source != core.FromLocal {
			t.Errorf("%+v, %v; want %s", d, err, want)
		}
	}
	if d, err := log.WithStorePolicy(core.FailClosed).Allow(background, "s", "note"); err != nil || d.Reason != core.StoreFailClosed {
		t.Errorf("%+v, %v", d, err)
	}
	if _, err := log.WithStorePolicy(core.FailOpen).Records(background, "s"); !errors.Is(err, core.ErrStore) {
		t.Errorf("Records: %v", err)
	}

	release, d, err := slots.WithStorePolicy(core.FailOpen).Hold(background, "s")
	if err != nil || d.Reason != core.StoreFailOpen {
		t.Errorf("%+v, %v", d, err)
	}
	release() // nothing
	here := slots.WithStorePolicy(local)
	for range 2 { // what is released is free again
		first, d, err := here.Hold(background, "s")
		second, _, _ := here.Hold(background, "s")
		if _, refused, _ := here.Hold(background, "s"); err != nil || !d.Allowed || d.Source != core.FromLocal || refused.Allowed {
			t.Fatalf("%+v, %v; a third slot of two: %+v", d, err, refused)
		}
		first()
		second()
	}
	for _, handle := range []func() error{
		func() error { _, err := log.Allow(background, "s", ""); return err },
		func() error { _, _, err := slots.Hold(background, "s"); return err },
	} {
		if err := handle(); !errors.Is(err, core.ErrStore) {
			t.Errorf("without a policy: %v", err)
		}
	}
}

// A slot that Redis takes when its caller no longer waits is given back, whether the caller got an error
// or a slot of this process.
func TestSlotsThatRedisTakesTooLate(t *testing.T) {
	server := redistest.Start(t)
	others := newLimiter(t, core.Options{Redis: server.Client(t)})
	limiter := newLimiter(t, core.Options{Redis: server.Client(t), Timeout: 250 * time.Millisecond})
	for name, policy := range map[string]core.StorePolicy{"error": {}, "local": core.CountLocally(1)} {
		t.Run(name, func(t *testing.T) {
			holds := func(l *core.Limiter, source core.Source) func() bool {
				slots := l.MustSlots(name, 1).LostAfter(time.Hour).WithStorePolicy(policy)
				return func() bool {
					release, d, err := slots.Hold(background, "s")
					release()
					return err == nil && d.Allowed && d.Source == source
				}
			}
			if !redistest.WaitUntil(holds(limiter, core.FromRedis), patient) { // now the script and a connection are there
				t.Fatal("no slot")
			}
			server.Stop()
			if holds(limiter, core.FromLocal)() != (name == "local") {
				t.Error("the slot was not taken here, or without Redis")
			}
			server.Continue()
			for range 2 { // then Redis has read what was sent before
				if err := server.Client(t).Ping(background).Err(); err != nil {
					t.Fatal(err)
				}
			}
			if !redistest.WaitUntil(holds(others, core.FromRedis), patient) {
				t.Error("the slot was not given back")
			}
		})
	}
}

// COSTS.md says with which limits callers wait less than a minute, because common SDKs ignore
// longer waits.
func TestWaitsThatSDKsObey(t *testing.T) {
	for _, c := range []struct {
		limit      core.Limit
		debt, cost int // cost is that of the call that has to wait
		longest    time.Duration
	}{
		{core.PerMinute(100_000), 0, 1, 62 * time.Second},
		{core.Limit{Max: 80_000, Window: 50 * time.Second}, 80_000, 80_000, 52 * time.Second},
		{core.PerMinute(100_000).Bucket(0), 0, 50_000, 30 * time.Second},
		{core.PerMinute(100_000).Bucket(0), 25_000, 25_000, 30 * time.Second},
	} {
		counter := newLimiter(t, core.Options{}).MustCounter("n", c.limit)
		if _, err := counter.Charge(background, "s", c.limit.Max); err != nil {
			t.Fatal(err)
		}
		if _, err := counter.Charge(background, "s", c.debt); err != nil {
			t.Fatal(err)
		}
		if d, err := counter.AllowN(background, "s", c.cost); err != nil || d.RetryAfter < c.longest/2 || d.RetryAfter > c.longest {
			t.Errorf("%v, with a debt of %d: wait %v, %v, want at most %v, and not much less", c.limit, c.debt, d.RetryAfter, err, c.longest)
		}
	}
}
