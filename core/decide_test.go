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

func TestCost(t *testing.T) {
	for _, test := range []struct {
		name         string
		cost         int
		status, left int
		reason       core.Reason // "" is no decision at all
	}{
		{"one", 1, 200, 9, core.Allowed},
		{"several", 4, 200, 6, core.Allowed},
		{"all", 10, 200, 0, core.Allowed},
		{"nothing", 0, 200, 10, ""},
		{"negative counts one", -3, 200, 9, core.Allowed},
		{"most negative", math.MinInt, 200, 9, core.Allowed},
		{"never fits", 11, 400, 10, core.CostTooHigh},
		{"largest", math.MaxInt, 400, 10, core.CostTooHigh},
	} {
		t.Run(test.name, func(t *testing.T) {
			onBothEngines(t, func(t *testing.T, options core.Options, _ core.Source) {
				var log logtest.Log
				var heard decisions
				options.Logger, options.OnDecision = log.Logger(), heard.note
				limiter := newLimiter(t, options)
				guard := newGuard(t, limiter, core.Rule{Name: "n", Seconds: 3600, MaxCount: 10, Cost: cost(test.cost)})
				v := newView("GET", "/")
				answer := wantStatus(t, guard, v, test.status)
				wantLeft(t, limiter, "n", "ip:192.0.2.1", core.PerHour(10), test.left)
				if test.reason == "" {
					if len(heard.heard)+len(v.response) > 0 {
						t.Errorf("a call that is not counted: %v, %v", heard.heard, v.response)
					}
				} else if d := heard.last(t, 1); d.Reason != test.reason {
					t.Errorf("reason %s, want %s", d.Reason, test.reason)
				}
				if test.status == 400 && (answer.Refusal.Code != 3 || answer.Refusal.RetryAfter != 0 || answer.Refusal.Decision.Limit != core.PerHour(10)) {
					t.Errorf("%+v", answer.Refusal)
				}
				if lines := log.Count("Cost is negative"); lines != 0 != (test.cost < 0) {
					t.Errorf("%d warnings of the cost", lines)
				}
			})
		})
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
	wantLeft(t, limiter, "n", me, core.PerHour(10), 9)
	v := newView("POST", "/")
	v.size = -1
	wantStatus(t, guard, v, 429) // it takes all four of a day
	wantLeft(t, limiter, "n", me, core.PerDay(4), 3)
	planned := rule
	planned.Name, planned.LimitFor = "planned", func(core.Request) (core.Limit, error) { return core.PerHour(3), nil }
	wantStatus(t, newGuard(t, limiter, planned), v, 200)
	wantLeft(t, limiter, "planned", me, core.PerHour(3), 0)
	v.size = math.MaxInt64 // a known size, though it is the largest
	for _, most := range []int{5, mostPermits} {
		wantStatus(t, newGuard(t, limiter, core.Rule{Name: fmt.Sprint("bytes ", most), Seconds: 1, MaxCount: most, Cost: core.CostBySize(1)}), v, 413)
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

// options returns options whose functions are those of the service owner.
func (f *ownersFault) options(o core.Options) core.Options {
	o.Identify = func(core.Request) (string, error) { f.here("Identify"); return "alice", nil }
	o.Reply = func(_ core.Request, ours core.Refusal) core.Refusal { f.here("Reply"); return ours }
	o.OnDecision = func(_ context.Context, e core.Event) {
		if e.Decision.Rule == "dry" {
			f.here("OnDecision of DryRun")
		} else {
			f.here("OnDecision")
		}
	}
	return o
}

// rules returns rules of every kind whose functions are those of the service owner.
func (f *ownersFault) rules() []core.Rule {
	free := func(int) bool { return false }
	return []core.Rule{
		{Name: "dry", Seconds: 3600, MaxCount: 9, Mode: core.DryRun},
		{Name: "slot", Limit: slotsOfAnHour(1), Key: func(core.Request) (string, error) { f.here("Key"); return "s", nil }},
		{
			Name: "free", Seconds: 3600, MaxCount: 1, NeedLogin: true, Count: free,
			Cost:     func(core.Request) int { f.here("Cost"); return 1 },
			LimitFor: func(core.Request) (core.Limit, error) { f.here("LimitFor"); return core.Limit{}, nil },
		},
		{Name: "thrice", Seconds: 3600, MaxCount: 3, Count: func(int) bool { f.here("Count"); return false }},
		{Name: "also free", Limit: core.PerHour(1).Log(), Count: free, Note: func(core.Request) string { f.here("Note"); return "" }},
	}
}

// A panic in a function of the service owner leaves no slot taken, and no charge that does not
// count.
func TestAPanicLeavesNothingBehind(t *testing.T) {
	for _, in := range []string{"OnDecision", "OnDecision of DryRun", "Identify", "Key", "Cost", "LimitFor", "Note", "Count", "handler", "Reply"} {
		t.Run(in, func(t *testing.T) {
			onBothEngines(t, func(t *testing.T, options core.Options, _ core.Source) {
				fault := new(ownersFault)
				limiter := newLimiter(t, fault.options(options))
				guard := newGuard(t, limiter, fault.rules()...)
				panics := func() int {
					fault.in = in
					wantPanic(t, in, func() {
						if answer := guard.Check(newView("GET", "/")); answer.Refusal == nil {
							answer.Run(func() int { fault.here("handler"); return ok })
						}
					})
					return ok
				}
				if in == "Reply" { // of a refusal
					wantStatus(t, guard, newView("GET", "/"), 200).Run(panics)
				} else {
					panics()
					panics()
				}
				fault.in = ""
				wantLeft(t, limiter, "slot", "s", slotsOfAnHour(1), 1)
				wantServed(t, guard, newView("GET", "/"), ok, 200)
			})
		})
	}
}

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
