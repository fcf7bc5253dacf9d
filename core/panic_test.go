package core_test

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/internal/redistest"
)

// ownersFault panics in the functions of the owner that it is told to.
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

// A panic in a function of the owner leaves no slot taken, and no charge that does not count.
func TestAPanicLeavesNothingBehind(t *testing.T) {
	for _, in := range []string{"OnDecision", "OnDecision of DryRun", "Identify", "Key", "Cost", "LimitFor", "Note", "Count", "handler", "Reply"} {
		t.Run(in, func(t *testing.T) {
			onBothEngines(t, func(t *testing.T, options core.Options, _ core.Source) {
				fault := new(ownersFault)
				options.Identify = func(core.Request) (string, error) { fault.here("Identify"); return "alice", nil }
				options.Reply = func(_ core.Request, ours core.Refusal) core.Refusal { fault.here("Reply"); return ours }
				options.OnDecision = func(_ context.Context, e core.Event) {
					d := e.Decision

					if d.Rule == "dry" {
						fault.here("OnDecision of DryRun")
					} else {
						fault.here("OnDecision")
					}
				}
				limiter := newLimiter(t, options)
				free := func(int) bool { return false }
				guard := newGuard(t, limiter,
					core.Rule{Name: "dry", Seconds: 3600, MaxCount: 9, DryRun: true},
					core.Rule{
						Name:  "slot",
						Limit: core.Limit{Max: 1, Window: time.Hour, Algorithm: core.Concurrency},
						Key:   func(core.Request) (string, error) { fault.here("Key"); return "s", nil },
					},
					core.Rule{
						Name: "free", Seconds: 3600, MaxCount: 1, NeedLogin: true, Count: free,
						Cost:     func(core.Request) int { fault.here("Cost"); return 1 },
						LimitFor: func(core.Request) (core.Limit, error) { fault.here("LimitFor"); return core.Limit{}, nil },
					},
					core.Rule{Name: "thrice", Seconds: 3600, MaxCount: 3, Count: func(int) bool { fault.here("Count"); return false }},
					core.Rule{
						Name:  "also free",
						Limit: core.PerHour(1).Log(),
						Count: free,
						Note:  func(core.Request) string { fault.here("Note"); return "" },
					},
				)
				call := func() {
					answer := guard.Check(newView("GET", "/"))
					if answer.Refusal == nil {
						answer.Run(func() int { fault.here("handler"); return ok })
					}
				}
				if in == "Reply" { // a refusal
					wantStatus(t, guard, newView("GET", "/"), 200).Run(func() int {
						fault.in = in
						wantPanic(t, in, call)
						return ok
					})
				} else {
					for range 2 {
						fault.in = in
						wantPanic(t, in, call)
					}
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

// Nor does one in OnDecision of a direct call leave anything that only the caller could have given
// back.
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
	// A replica answers, and does not write. Of a server that is out of reach a goroutine tells,
	// whose panic nobody could recover.
	replica := redistest.Start(t, "--replicaof", "127.0.0.1", "1")
	options := core.Options{Redis: replica.Client(t), Timeout: patient, Logger: slog.New(fault)}
	limiter := newLimiter(t, options)
	guard := newGuard(t, limiter, core.Rule{Name: "n", Limit: core.Limit{Max: 1, Window: time.Hour, Algorithm: core.Concurrency}, OnStoreError: core.CountLocally(1)})
	fault.in = "Logger"
	wantPanic(t, fault.in, func() { guard.Check(newView("GET", "/")) })
	fault.in = ""
	wantServed(t, guard, newView("GET", "/"), ok, 200, 200)
}
