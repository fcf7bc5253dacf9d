package core_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/core/limittest"
)

// counts are the decisions of Stats, by what is counted apart.
func counts(t testing.TB, limiter *core.Limiter) map[core.DecisionCount]uint64 {
	t.Helper()
	found := make(map[core.DecisionCount]uint64)
	for _, d := range limiter.Stats().Decisions {
		n := d.Count
		d.Count = 0
		if _, twice := found[d]; twice || n == 0 {
			t.Errorf("%+v is there twice, or never occurred", d)
		}
		found[d] = n
	}
	return found
}

func counted(rule string, reason core.Reason, source core.Source) core.DecisionCount {
	return core.DecisionCount{Rule: rule, Reason: reason, Source: source}
}

func wantCounts(t *testing.T, limiter *core.Limiter, want map[core.DecisionCount]uint64) {
	t.Helper()
	if got := counts(t, limiter); !maps.Equal(got, want) {
		t.Errorf("counted %v\nwant %v", got, want)
	}
}

// Many goroutines, of which each makes every kind of call, are counted exactly, with and without somebody who listens.
func TestStatsAreExact(t *testing.T) {
	const goroutines, rounds = 64, 50
	const n = goroutines * rounds
	day := func(name string, most int) core.Rule {
		return core.Rule{Name: name, Window: 24 * time.Hour, MaxCount: most}
	}
	for _, listens := range []bool{false, true} {
		options := core.Options{Identify: whoSays}
		if listens {
			options.OnDecision = func(context.Context, core.Decision) {}
		}
		limiter := newLimiter(t, options)
		tried, login := day("tried", 1), day("login", n)
		tried.DryRun, login.NeedLogin = true, true
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
					_, _ = limiter.Allow(background, "a", "user:alice", core.PerHour(11))
					_, _ = limiter.Allow(background, "free", "user:alice", core.Unlimited)
					_, _ = limiter.Peek(background, "peeked", "user:alice", core.PerHour(1))
					_, _ = limiter.Allow(background, "wrong", "user:alice", core.PerHour(0))
				}
			})
		}
		calls.Wait()
		left := uint64(n - 10)
		wantCounts(t, limiter, map[core.DecisionCount]uint64{
			counted("a", core.Allowed, core.FromMemory):            n + 11,
			counted("a", core.LimitExceeded, core.FromMemory):      n - 11,
			counted("b", core.Allowed, core.FromMemory):            10,
			counted("b", core.LimitExceeded, core.FromMemory):      left,
			counted("c", core.Allowed, core.FromMemory):            7,
			counted("c", core.LimitExceeded, core.FromMemory):      n - 7,
			counted("tried", core.Allowed, core.FromMemory):        1,
			counted("tried", core.DryRunExceeded, core.FromMemory): n - 1,
			counted("tried", core.Allowed, core.FromNobody):        n,
			counted("login", core.NotLoggedIn, core.FromNobody):    n,
			counted("free", core.Allowed, core.FromNobody):         n,
		})
	}
}

// What is counted is what OnDecision hears, whatever happened.
func TestStatsAreWhatOnDecisionHears(t *testing.T) {
	var heard decisions
	options := core.Options{Identify: whoSays, OnDecision: heard.note}
	limiter := newLimiter(t, options)
	heavy := core.Rule{Name: "heavy", Seconds: 60, Cost: cost(9)}
	free := core.Rule{Name: "free", Seconds: 60, Cost: cost(0)}
	untried := core.Rule{Name: "untried", Seconds: 60, Cost: cost(9), DryRun: true}
	banning := core.Rule{Name: "banning", Seconds: 60, MaxCount: 1, Ban: core.Ban{After: 1, For: time.Hour}}
	failing := core.Rule{Name: "failing", Seconds: 60, Key: func(core.Request) (string, error) { return "", errors.New("out of order") }}
	for _, guard := range []*core.Guard{
		newGuard(t, limiter, heavy), newGuard(t, limiter, free), newGuard(t, limiter, untried), newGuard(t, limiter, failing),
		newGuard(t, limiter, banning), newGuard(t, limiter, core.Rule{Seconds: 60, Also: []core.Limit{core.PerHour(3)}}),
	} {
		for range 6 {
			guard.Check(newView("GET", "/x"))
		}
	}
	limiter.CheckRule(newView("GET", "/x"), core.Rule{Name: "wrong"}, "")
	limiter.CheckRule(newView("GET", "/x"), core.Rule{Name: "inside", Seconds: 1}, "account:7")
	release, _, _ := limiter.Hold(background, "held", "user:alice", core.InFlight(1))
	_, _, _ = limiter.Hold(background, "held", "user:alice", core.InFlight(1))
	release()
	_, _ = limiter.Reserve(background, "reserved", "user:alice", core.PerHour(1).Bucket(1), 1)
	_, _ = limiter.AllowNoted(background, "noted", "user:alice", core.Limit{Max: 1, Window: time.Hour, Algorithm: core.SlidingLog}, 1, "n")
	ended, cancel := context.WithCancel(background)
	cancel()
	_, _ = limiter.Allow(ended, "ended", "user:alice", core.PerHour(1))
	want := make(map[core.DecisionCount]uint64)
	for _, d := range heard.heard {
		want[counted(d.Rule, d.Reason, d.Source)]++
	}
	if len(want) < 12 {
		t.Fatalf("only %v was heard", want)
	}
	wantCounts(t, limiter, want)
}

func TestStatsOfAStoreThatFails(t *testing.T) {
	options := deadRedis(t)
	limiter := newLimiter(t, options)
	open, closed := core.Rule{Name: "open", Seconds: 1}, core.Rule{Name: "closed", Seconds: 1, OnStoreError: core.FailClosed}
	wantStatus(t, newGuard(t, limiter, open), newView("GET", "/x"), 200)
	wantStatus(t, newGuard(t, limiter, closed), newView("GET", "/x"), 503)
	if _, err := limiter.Allow(background, "direct", "user:alice", core.PerSecond(1)); !errors.Is(err, core.ErrStore) {
		t.Error(err) // no decision, and so not counted
	}
	wantCounts(t, limiter, map[core.DecisionCount]uint64{
		counted("open", core.StoreFailOpen, core.FromNobody): 1, counted("closed", core.StoreFailClosed, core.FromNobody): 1,
	})
	if s := limiter.Stats(); s.Keys != 0 || s.Evictions != 0 {
		t.Errorf("%d keys, %d evictions of a limiter that keeps none", s.Keys, s.Evictions)
	}
}

// Callers may choose the names of direct calls: those beyond a bound are counted together, and none is lost.
func TestStatsOfAMillionNames(t *testing.T) {
	limiter := newLimiter(t, core.Options{MaxKeys: 100})
	guard := newGuard(t, limiter, core.Rule{Name: "late", Seconds: 60})
	const n = 1_000_000
	var calls sync.WaitGroup
	for g := range 4 {
		calls.Go(func() {
			for i := range n / 4 {
				_, _ = limiter.Allow(background, strconv.Itoa(g*n+i), "user:alice", core.PerHour(1))
			}
		})
	}
	calls.Wait()
	guard.Check(newView("GET", "/x"))
	found := counts(t, limiter)
	if late := counted("late", core.Allowed, core.FromMemory); found[late] != 1 {
		t.Error("the rule is not counted under its own name")
	}
	if others := found[counted(core.OtherNames, core.Allowed, core.FromMemory)]; others != n-core.MaxDirectTallies {
		t.Errorf("%d under other names, want %d", others, n-core.MaxDirectTallies)
	}
	if len(found) != core.MaxDirectTallies+2 {
		t.Errorf("%d entries", len(found))
	}
	if kept := core.PreparedCalls(limiter); kept > core.MaxDirectTallies {
		t.Errorf("%d names are kept", kept)
	}
}

func TestStatsOfKeys(t *testing.T) {
	limiter := newLimiter(t, core.Options{MaxKeys: 100})
	for i := range 150 {
		if _, err := limiter.Allow(background, "n", fmt.Sprint("user:", i), core.PerHour(1)); err != nil {
			t.Fatal(err)
		}
	}
	if s := limiter.Stats(); s.Keys > 100 || s.Keys < 50 || s.Keys+int(s.Evictions) != 150 {
		t.Errorf("%d keys and %d evictions of 150 subjects in 100 places", s.Keys, s.Evictions)
	}
}

func TestStatsOfTrips(t *testing.T) {
	limiter := newLimiter(t, core.Options{})
	if s := limiter.Stats(); s.Trips != 0 || s.Calls != 0 || s.Merged != 0 || s.Shards != nil {
		t.Errorf("%+v in process", s)
	}
	server := limittest.StartRedis(t)
	limiter = newLimiter(t, core.Options{Redis: server.Client(t), Timeout: patient})
	for range 3 {
		if _, err := limiter.Allow(background, "n", "s", core.PerHour(5)); err != nil {
			t.Fatal(err)
		}
	}
	s := limiter.Stats()
	if s.Trips != 4 || s.Calls != 3 || s.Merged != 0 { // the first had to be sent with the script's text
		t.Errorf("%+v for three calls one after the other", s)
	}
	if len(s.Shards) != 1 || s.Shards[0] != (core.ShardStats{Addr: server.Addr(), Breaker: core.BreakerClosed}) || s.StoreErrors != nil || s.Losses != 0 {
		t.Errorf("%+v of a healthy server", s)
	}
}

// A reason or a source that this code has never heard of is counted like any other.
func TestStatsOfNewSources(t *testing.T) {
	limiter := newLimiter(t, core.Options{})
	want := make(map[core.DecisionCount]uint64)
	for i := range 40 {
		of := counted("n", core.Reason(fmt.Sprint("reason", i%8)), core.Source(fmt.Sprint("source", i%5)))
		core.CountDecision(limiter, of)
		want[of]++
	}
	wantCounts(t, limiter, want)
}

// Entries come in an order, so that two snapshots can be compared.
func TestStatsInOrder(t *testing.T) {
	limiter := newLimiter(t, core.Options{})
	for _, rule := range []string{"b", "a", "c", "a"} {
		core.CountDecision(limiter, counted(rule, core.LimitExceeded, core.FromRedis))
		core.CountDecision(limiter, counted(rule, core.Allowed, core.FromRedis))
		core.CountDecision(limiter, counted(rule, core.Allowed, core.FromMemory))
	}
	var last core.DecisionCount
	for _, d := range limiter.Stats().Decisions {
		if fmt.Sprint(d.Rule, d.Reason, d.Source) <= fmt.Sprint(last.Rule, last.Reason, last.Source) {
			t.Errorf("%+v comes after %+v", d, last)
		}
		last = d
	}
	if last != (core.DecisionCount{Rule: "c", Reason: core.LimitExceeded, Source: core.FromRedis, Count: 1}) {
		t.Errorf("the last is %+v", last)
	}
}
