package core_test

import (
	"context"
	"testing"

	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/internal/redistest"
)

// waitsForRedis returns a limiter on Redis that does not answer about rules in DryRun until release is
// called, and what OnDecision receives about them.
func waitsForRedis(t *testing.T) (limiter *core.Limiter, events chan core.Event, release func()) {
	events = make(chan core.Event, 2000)
	limiter = newLimiter(t, core.Options{Redis: redistest.Start(t).Client(t), Timeout: patient, OnDecision: func(ctx context.Context, e core.Event) {
		if e.DryRun {
			if ctx.Err() != nil || ctx.Value(ownKey{}) != "own" {
				t.Errorf("the context of %+v has ended: %v", e, ctx.Err())
			}
			events <- e
		}
	}})
	return limiter, events, core.HoldDryRuns(limiter)
}

// Neither callers nor handlers wait for a rule in DryRun. Its event has a copy of the call, and what it
// settles and gives back waits for its question.
func TestDryRunsAreBehindTheAnswer(t *testing.T) {
	limiter, events, release := waitsForRedis(t)
	by := func(name string, limit core.Limit, change func(*core.Rule)) core.Rule {
		r := core.Rule{Name: name, Limit: limit, Mode: core.DryRun}
		change(&r)
		return r
	}
	none := func(*core.Rule) {}
	guard := newGuard(t, limiter,
		core.Rule{Name: "live", Limit: core.PerHour(9), Estimate: cost(5)},
		by("live", core.PerHour(8), func(r *core.Rule) { r.Estimate = cost(5) }),
		by("counted", core.PerHour(2), func(r *core.Rule) { r.Count = func(status int) bool { return status != 200 } }),
		by("slots", core.InFlight(1), none), by("plain", core.PerHour(2), none),
	)
	ctx, leave := context.WithCancel(context.WithValue(background, ownKey{}, "own"))
	v := newView("GET", "/a").In(ctx)
	answer := guard.Check(v)
	answer.Run(func() int {
		if err := core.Settle(answer.Context, core.Costs{"live": 2}); err != nil {
			t.Error(err)
		}
		return 200
	})
	leave()
	wantLeft(t, limiter, "live", me, core.PerHour(9), 7)
	if now := limiter.Stats().DryRunsNow; len(events) > 0 || now != 4 {
		t.Errorf("%d dry runs have been decided, and %d are under way, want 0 and 4", len(events), now)
	}
	release()
	awaitDryRuns(t, limiter)
	for range 4 {
		if e := <-events; e.Path != "/a" || e.Decision.Key != me || e.Decision.Reason != core.Allowed {
			t.Errorf("%+v", e)
		}
	}
	guard.Check(newView("GET", "/a").In(context.WithValue(background, ownKey{}, "own")))
	awaitDryRuns(t, limiter)
	left := make(map[string]int)
	for range 4 {
		e := <-events
		left[e.Decision.Rule] = e.Decision.Remaining
	}
	for name, want := range map[string]int{"live": 1, "counted": 1, "slots": 0, "plain": 0} {
		if left[name] != want {
			t.Errorf("%d left of %s after the second call, want %d", left[name], name, want)
		}
	}
}

// At most 1,000 calls wait for dry runs. What is dropped is counted, and Close waits for the others.
func TestDryRunsAreBounded(t *testing.T) {
	limiter, events, release := waitsForRedis(t)
	guard := newGuard(t, limiter, tried)
	ctx := context.WithValue(background, ownKey{}, "own")
	for range 1003 {
		wantStatus(t, guard, newView("GET", "/").In(ctx), 200)
	}
	release()
	limiter.Close()
	if s := limiter.Stats(); s.DryRuns["n"].Count != 1000 || s.DryRuns["n"].Sum <= 0 || s.DryRunsDropped["n"] != 3 || len(events) != 1000 {
		t.Errorf("%+v, %v dropped, and %d events", s.DryRuns, s.DryRunsDropped, len(events))
	}
}
