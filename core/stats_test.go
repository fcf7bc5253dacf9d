package core_test

import (
	"context"
	"errors"
	"maps"
	"sync"
	"testing"
	"time"

	"github.com/accesslimit/accesslimit/core"
)

// counts returns the decisions of Stats, by rule, reason and source.
func counts(t testing.TB, limiter *core.Limiter) map[core.DecisionCount]tallied {
	t.Helper()
	found := make(map[core.DecisionCount]tallied)
	for _, d := range limiter.Stats().Decisions {
		n := tallied{d.Count, d.Bound}
		near := d.Near
		d.Count, d.Bound, d.Near = 0, 0, 0
		if _, twice := found[d]; twice || n.count == 0 || max(n.bound, near) > n.count {
			t.Errorf("%+v is there twice, or never occurred, or bound or was near more often than it occurred: %+v, %d", d, n, near)
		}
		found[d] = n
	}
	return found
}

// tallied is how often a decision occurred, and how often it bound.
type tallied struct{ count, bound uint64 }

// each returns a tally of decisions that always bound.
func each(n uint64) tallied { return tallied{n, n} }

func counted(rule string, reason core.Reason, source core.Source) core.DecisionCount {
	return core.DecisionCount{Rule: rule, Reason: reason, Source: source}
}

func wantCounts(t *testing.T, limiter *core.Limiter, want map[core.DecisionCount]tallied) {
	t.Helper()
	if got := counts(t, limiter); !maps.Equal(got, want) {
		t.Errorf("counted %v\nwant %v", got, want)
	}
}

// Many goroutines make every kind of call. All calls are counted exactly, with and without
// OnDecision.
func TestStatsAreExact(t *testing.T) {
	const goroutines, rounds = 64, 20
	const n = goroutines * rounds
	day := func(name string, most int) core.Rule {
		return core.Rule{Name: name, Limit: core.Limit{Max: most, Window: 24 * time.Hour}}
	}
	for _, listens := range []bool{false, true} {
		options := core.Options{Identify: whoSays}
		if listens {
			options.OnDecision = func(context.Context, core.Event) {}
		}
		limiter := newLimiter(t, options)
		tried, login := day("tried", 1), day("login", n)
		tried.Mode, login.NeedLogin = core.DryRun, true
		guards := []*core.Guard{
			newGuard(t, limiter, day("a", 2*n)),
			newGuard(t, limiter, day("b", 10)),
			newGuard(t, limiter, day("a", 2*n), day("c", 7)), // c binds, because less is left of it
			newGuard(t, limiter, tried),
			newGuard(t, limiter, login),
		}
		var calls sync.WaitGroup
		for range goroutines {
			calls.Go(func() {
				for range rounds {
					for _, guard := range guards {
						guard.Check(newView("GET", "/x"))
					}
					_, _ = limiter.MustCounter("a", core.PerHour(11)).Allow(background, "user:alice")
					_, _ = limiter.MustCounter("free", core.Unlimited).Allow(background, "user:alice")
					_, _ = peek(limiter, background, "peeked", "user:alice", core.PerHour(1))
					_, _ = limiter.Counter("wrong", core.PerHour(0))
				}
			})
		}
		calls.Wait()
		wantCounts(t, limiter, map[core.DecisionCount]tallied{
			counted("a", core.Allowed, core.FromMemory):            {n + n + 11, n + 11},
			counted("a", core.LimitExceeded, core.FromMemory):      each(n - 11),
			counted("b", core.Allowed, core.FromMemory):            each(10),
			counted("b", core.LimitExceeded, core.FromMemory):      each(n - 10),
			counted("c", core.Allowed, core.FromMemory):            each(7),
			counted("c", core.LimitExceeded, core.FromMemory):      each(n - 7),
			counted("tried", core.Allowed, core.FromMemory):        {1, 0},
			counted("tried", core.DryRunExceeded, core.FromMemory): {n - 1, 0},
			counted("login", core.NotLoggedIn, core.FromNobody):    each(n),
			counted("free", core.Allowed, core.FromNobody):         each(n),
		})
	}
}

// OnDecision receives the decision that binds, whatever happened. A rule in DryRun never binds.
func TestStatsEqualTheEvents(t *testing.T) {
	var heard decisions
	options := core.Options{Identify: whoSays, OnDecision: heard.note}
	limiter := newLimiter(t, options)
	heavy := core.Rule{Name: "heavy", Seconds: 60, Cost: cost(9)}
	free := core.Rule{Name: "free", Seconds: 60, Cost: cost(0)}
	untried := core.Rule{Name: "untried", Seconds: 60, Cost: cost(9), Mode: core.DryRun}
	banning := core.Rule{Name: "banning", Seconds: 60, MaxCount: 1, Ban: core.Ban{After: 1, For: time.Hour}}
	failing := core.Rule{Name: "failing", Seconds: 60, Key: func(core.Request) (string, error) { return "", errors.New("out of order") }}
	freeBanning := core.Rule{Name: "free", Seconds: 60, Cost: cost(0), Ban: core.Ban{After: 1, For: time.Hour}}
	for _, guard := range []*core.Guard{
		newGuard(t, limiter, heavy), newGuard(t, limiter, free), newGuard(t, limiter, freeBanning), newGuard(t, limiter, untried), newGuard(t, limiter, failing),
		newGuard(t, limiter, banning), newGuard(t, limiter, core.Rule{Seconds: 60, Also: []core.Limit{core.PerHour(3)}}),
	} {
		for range 6 {
			guard.Check(newView("GET", "/x"))
		}
	}
	checkRule(limiter, newView("GET", "/x"), core.Rule{Name: "inside", Seconds: 1}, "account:7")
	release, _, _ := limiter.MustSlots("held", 1).Hold(background, "user:alice")
	_, _, _ = limiter.MustSlots("held", 1).Hold(background, "user:alice")
	release()
	_, _ = limiter.MustPacer("reserved", core.PerHour(1).Bucket(1)).Reserve(background, "user:alice", 1)
	_, _ = limiter.MustLog("noted", core.Limit{Max: 1, Window: time.Hour, Algorithm: core.SlidingLog}).AllowN(background, "user:alice", 1, "n")
	ended, cancel := context.WithCancel(background)
	cancel()
	_, _ = limiter.MustCounter("ended", core.PerHour(1)).Allow(ended, "user:alice")
	want := make(map[core.DecisionCount]tallied)
	for _, d := range heard.heard {
		n := want[counted(d.Rule, d.Reason, d.Source)]
		n.count++
		if d.Reason != core.DryRunExceeded {
			n.bound++
		}
		want[counted(d.Rule, d.Reason, d.Source)] = n
	}
	if len(want) < 12 {
		t.Fatalf("OnDecision received only %v", want)
	}
	wantCounts(t, limiter, want)
}

func TestStatsOfAStoreThatFails(t *testing.T) {
	options := deadRedis(t)
	limiter := newLimiter(t, options)
	open, closed := core.Rule{Name: "open", Seconds: 1}, core.Rule{Name: "closed", Seconds: 1, OnStoreError: core.FailClosed}
	wantStatus(t, newGuard(t, limiter, open), newView("GET", "/x"), 200)
	wantStatus(t, newGuard(t, limiter, closed), newView("GET", "/x"), 503)
	if _, err := limiter.MustCounter("direct", core.PerSecond(1)).Allow(background, "user:alice"); !errors.Is(err, core.ErrStore) {
		t.Error(err) // no decision, and so not counted
	}
	wantCounts(t, limiter, map[core.DecisionCount]tallied{
		counted("open", core.StoreFailOpen, core.FromNobody): each(1), counted("closed", core.StoreFailClosed, core.FromNobody): each(1),
	})
	if s := limiter.Stats(); s.Keys != 0 || s.Evictions != 0 {
		t.Errorf("%d keys, %d evictions of a limiter that keeps none", s.Keys, s.Evictions)
	}
}

// Calls that leave a fifth of a limit or less are near it.
func TestStatsOfCallsNearALimit(t *testing.T) {
	limiter := newLimiter(t, core.Options{})
	counter := limiter.MustCounter("n", core.PerHour(100), core.PerDay(10))
	for range 12 {
		_, _ = counter.Allow(background, "user:alice")
		_, _ = counter.Peek(background, "user:alice")
	}
	for _, d := range limiter.Stats().Decisions {
		if want := map[core.Reason]uint64{core.Allowed: 3}[d.Reason]; d.Near != want {
			t.Errorf("%+v, want %d near", d, want)
		}
	}
}
