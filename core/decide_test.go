package core_test

import (
	"context"
	"fmt"
	"log/slog"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/internal/logtest"
	"github.com/accesslimit/accesslimit/internal/redistest"
)

// A call that costs nothing is not decided, nor told of. A negative cost counts as one, and is logged.
func TestExtremeCosts(t *testing.T) {
	for n, left := range map[int]int{0: 10, -3: 9, math.MinInt: 9} {
		var log logtest.Log
		var heard decisions
		limiter, v := newLimiter(t, core.Options{Logger: log.Logger(), OnDecision: heard.note}), newView("GET", "/")
		wantStatus(t, newGuard(t, limiter, core.Rule{Name: "n", Seconds: 3600, MaxCount: 10, Cost: cost(n)}), v, 200)
		wantLeft(t, limiter, "n", me, core.PerHour(10), left)
		if len(heard.heard) != 10-left || (len(v.response) > 0) != (left < 10) || log.Count("Cost is negative") != 10-left {
			t.Errorf("a cost of %d: %v, %v, %s", n, heard.heard, v.response, log.String())
		}
	}
}

// A cost by size that can never fit gets a refusal that says so. A unit below one byte is refused
// when the rule is made.
func TestCostBySize(t *testing.T) {
	limiter := newLimiter(t, core.Options{})
	rule := core.Rule{Name: "n", Seconds: 3600, MaxCount: 10, Also: []core.Limit{core.PerDay(4), core.InFlight(2)}, Cost: core.CostBySize(100)}
	guard := newGuard(t, limiter, rule)
	for size, want := range map[int64]int{401: 413, math.MaxInt64: 413, 0: 200} {
		v := newView("POST", "/")
		v.size = size
		answer := wantStatus(t, guard, v, want)
		if r := answer.Refusal; r != nil && (r.Decision.Reason != core.CostTooHigh || r.Code != 3 || r.RetryAfter != 0 || !strings.Contains(r.Message, "body")) {
			t.Errorf("%+v", r)
		}
	}
	v, planned := newView("POST", "/"), rule // a size of -1, which takes all
	planned.Name, planned.LimitFor = "planned", func(core.Request) (core.Limit, error) { return core.PerHour(3), nil }
	wantStatus(t, newGuard(t, limiter, planned), v, 200)
	wantLeft(t, limiter, "planned", me, core.PerHour(3), 0)
	v.size = math.MaxInt64 // a known size, though it is the largest
	for _, most := range []int{5, mostPermits} {
		wantStatus(t, newGuard(t, limiter, core.Rule{Name: fmt.Sprint("bytes ", most), Seconds: 1, MaxCount: most, Cost: core.CostBySize(1)}, rule), v, 413)
	}
	rule.Name, rule.Cost = "plain", cost(11)
	wantStatus(t, newGuard(t, limiter, core.Rule{Name: "first", Seconds: 1, Cost: core.CostBySize(1)}, rule), newView("POST", "/"), 400)
	if !panics(func() { core.CostBySize(0) }) {
		t.Error("a unit of no bytes is accepted")
	}
}

// ownersFault panics in the functions of the service owner that it names.
type ownersFault struct{ in string }

func (f *ownersFault) here(in string) {
	if f.in == in {
		panic(in)
	}
}

// Enabled implements slog.Handler.
func (f *ownersFault) Enabled(context.Context, slog.Level) bool { f.here("Logger"); return false }

func (f *ownersFault) Handle(context.Context, slog.Record) error { return nil }
func (f *ownersFault) WithAttrs([]slog.Attr) slog.Handler        { return f }
func (f *ownersFault) WithGroup(string) slog.Handler             { return f }

func slotsOfAnHour(n int) core.Limit {
	return core.Limit{Max: n, Window: time.Hour, Algorithm: core.Concurrency}
}

// A panic in OnDecision of a direct call leaves nothing behind that only the caller could have
// given back.
func TestAPanicOfADirectCall(t *testing.T) {
	onBothEngines(t, func(t *testing.T, options core.Options, _ core.Source) {
		fault := new(ownersFault)
		options.OnDecision = func(context.Context, core.Event) { fault.here("OnDecision") }
		limiter, bucket := newLimiter(t, options), core.PerHour(1).Bucket(1)
		fault.in = "OnDecision"
		wantPanic(t, fault.in, func() { _, _, _ = holdBy(limiter, background, "held", "s", slotsOfAnHour(1)) })
		wantPanic(t, fault.in, func() { _, _ = limiter.MustPacer("turn", bucket).Reserve(background, "s", 1) })
		wantPanic(t, fault.in, func() { _, _ = limiter.MustPacer("turn", bucket).Acquire(background, "s", 1) })
		wantLeft(t, limiter, "held", "s", slotsOfAnHour(1), 1)
		wantLeft(t, limiter, "turn", "s", bucket, 1)
	})
}

// A logger that panics while the store fails keeps nothing from being given back.
func TestAPanicOfTheLogger(t *testing.T) {
	fault := new(ownersFault)
	// A replica answers, and refuses to write. If a server is out of reach, a goroutine logs that,
	// and nobody could recover its panic.
	replica := redistest.Start(t, "--replicaof", "127.0.0.1", "1")
	options := core.Options{Redis: replica.Client(t), Timeout: patient, Logger: slog.New(fault)}
	limiter := newLimiter(t, options)
	guard := newGuard(t, limiter, core.Rule{Name: "n", Limit: core.Limit{Max: 1, Window: time.Hour, Algorithm: core.Concurrency}, OnStoreError: core.CountLocally(1)})
	fault.in = "Logger"
	wantPanic(t, fault.in, func() { guard.Check(newView("GET", "/")) })
	fault.in = ""
	wantServed(t, guard, newView("GET", "/"), ok, 200, 200)
}
