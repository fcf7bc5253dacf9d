package core_test

import (
	"testing"
	"time"

	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/internal/redistest"
)

// Two rules that meet in one counter hold together, whatever counts it: the smaller limit, and the
// larger cost, once.
func TestRulesThatMeetInOneCounter(t *testing.T) {
	eachLasting(t, 9, func(t *testing.T, limiter *core.Limiter, limit core.Limit) {
		rule := func(n, weight int) core.Rule {
			l := smaller(limit, n)
			return core.Rule{
				Key:   key("s"),
				Cost:  cost(weight),
				Limit: core.Limit{Max: l.Max, Calendar: l.Calendar, Window: l.Window, Algorithm: l.Algorithm, Burst: l.Burst},
			}
		}
		for name, rules := range map[string][]core.Rule{"small first": {rule(4, 1), rule(8, 2)}, "small last": {rule(8, 1), rule(4, 2)}} {
			t.Run(name, func(t *testing.T) {
				if _, err := resetOf(limiter, background, "GET /", "s", limit); err != nil {
					t.Fatal(err)
				}
				v := newView("GET", "/")
				wantServed(t, newGuard(t, limiter, rules...), v, ok, 200, 200, 429)
				wantLeft(t, limiter, "GET /", "s", limit, 5)
				if got := parseList(t, v.response["Ratelimit-Policy"]); len(got) != 3 { // one entry for each of three calls
					t.Errorf("%d entries for three calls of one counter", len(got))
				}
				wantServed(t, newGuard(t, limiter, rule(4, 3), rule(8, 5)), newView("GET", "/"), ok, 400)
			})
		}
	})
}

// smaller is the limit with another Max, or of a bucket another Burst.
func smaller(limit core.Limit, n int) core.Limit {
	if limit.Algorithm == core.TokenBucket {
		limit.Burst = n
		return limit
	}
	limit.Max = n
	return limit
}

// A call takes one slot of a counter in which two of its rules meet, and gives that back.
func TestSlotsThatMeetInOneCounter(t *testing.T) {
	onBothEngines(t, func(t *testing.T, options core.Options, _ core.Source) {
		limiter := newLimiter(t, options)
		guard := newGuard(t, limiter, core.Rule{Limit: core.Limit{Max: 4, Window: 60 * time.Second, Algorithm: core.Concurrency}}, core.Rule{Limit: core.Limit{Max: 2, Window: 60 * time.Second, Algorithm: core.Concurrency}})
		serveInside(t, guard, func() {
			wantLeft(t, limiter, "GET /", me, slots(4), 3)
			serveInside(t, guard, func() { wantStatus(t, guard, newView("GET", "/"), 429) })
		})
		wantLeft(t, limiter, "GET /", me, slots(4), 4)
	})
}

// Where any of them must not pass uncounted, none does.
func TestPoliciesThatMeetInOneCounter(t *testing.T) {
	open, closed := core.Rule{Name: "n", Seconds: 60}, core.Rule{Name: "n", Seconds: 60, OnStoreError: core.FailClosed}
	for name, rules := range map[string][]core.Rule{"closed last": {open, closed}, "closed first": {closed, open}} {
		t.Run(name, func(t *testing.T) {
			wantServed(t, newGuard(t, newLimiter(t, deadRedis(t)), rules...), newView("GET", "/"), ok, 503)
		})
	}
}

// The ban of one of two rules that meet hears of refusals by what both allow, whichever of them has
// it.
func TestABanOfRulesThatMeet(t *testing.T) {
	ban := core.Ban{After: 1, For: 30 * time.Hour}
	with, without := core.Rule{Seconds: 3600, Ban: ban}, core.Rule{Seconds: 3600, MaxCount: 2}
	other, elsewhere := core.Rule{Name: "other", Seconds: 3600}, core.Rule{Name: "elsewhere", Seconds: 3600, Key: key("else")}
	also := with
	also.Also = []core.Limit{core.PerDay(9)}
	for name, rules := range map[string][]core.Rule{
		"first": {with, without}, "last": {without, with}, "both": {with, without, with},
		"behind another": {other, without, with}, "around another": {without, other, with}, "around others": {without, other, with, elsewhere, also},
	} {
		t.Run(name, func(t *testing.T) {
			onBothEngines(t, func(t *testing.T, options core.Options, _ core.Source) {
				limiter := newLimiter(t, options)
				guard := newGuard(t, limiter, rules...)
				wantServed(t, guard, newView("GET", "/"), ok, 200, 200)
				for range 2 {
					d := wantStatus(t, guard, newView("GET", "/"), 429).Refusal.Decision
					if d.Reason != core.Banned || d.RetryAfter < 29*time.Hour || d.Limit.Max != 2 {
						t.Errorf("%+v", d)
					}
				}
				if _, err := limiter.Unban(background, "GET /", me); err != nil {
					t.Error(err)
				}
				wantLeft(t, limiter, "GET /", me, core.PerHour(2), 0)
			})
		})
	}
}

// Rules with one ban are two rules where a plan gives one of them another counter. The ban hears of
// both.
func TestABanOfRulesWithAnotherPlan(t *testing.T) {
	onBothEngines(t, func(t *testing.T, options core.Options, _ core.Source) {
		rule := core.Rule{Name: "n", Seconds: 3600, MaxCount: 2, Ban: core.Ban{After: 1, For: 30 * time.Hour}}
		planned := rule
		planned.LimitFor = func(core.Request) (core.Limit, error) { return core.PerDay(9), nil }
		guard := newGuard(t, newLimiter(t, options), planned, core.Rule{Name: "other", Seconds: 3600}, rule)
		wantServed(t, guard, newView("GET", "/"), ok, 200, 200)
		if d := wantStatus(t, guard, newView("GET", "/"), 429).Refusal.Decision; d.Reason != core.Banned {
			t.Errorf("%+v", d)
		}
	})
}

// A ban finds what it watches among counters that are asked apart: those of other servers, and
// those that nobody counts meanwhile.
func TestABanOfRulesThatMeetApart(t *testing.T) {
	for name, options := range map[string]core.Options{
		"ring": {Redis: redistest.StartRing(t, 2).Client(t), Timeout: patient}, "local": deadRedis(t),
	} {
		t.Run(name, func(t *testing.T) {
			rule := core.Rule{Name: "n", Seconds: 3600, MaxCount: 2, OnStoreError: core.CountLocally(1)}
			banning := rule
			banning.Ban = core.Ban{After: 1, For: 30 * time.Hour}
			elsewhere := core.Rule{Name: "elsewhere", Seconds: 3600, Key: key("else")}
			guard := newGuard(t, newLimiter(t, options), elsewhere, rule, elsewhere, core.Rule{Name: "other", Seconds: 3600, OnStoreError: core.CountLocally(1)}, banning)
			wantServed(t, guard, newView("GET", "/"), ok, 200, 200)
			if d := wantStatus(t, guard, newView("GET", "/"), 429).Refusal.Decision; d.Reason != core.Banned {
				t.Errorf("%+v", d)
			}
		})
	}
}

// Nor does a refusal count twice because two rules listen to the same ban.
func TestABanOfRulesThatMeetComesOnce(t *testing.T) {
	limiter, clock := atTestTime(t, core.Options{})
	rule := stern
	rule.Name, rule.Ban.After = "", 1
	also := rule
	also.Also = []core.Limit{{Max: 1, Window: 2 * time.Minute, Algorithm: core.CalendarWindow}}
	guard := newGuard(t, limiter, rule, also)
	wantStatus(t, guard, newView("GET", "/"), 200)
	wantBan(t, guard, 10*time.Minute)
	clock.add(10 * time.Minute)
	wantStatus(t, guard, newView("GET", "/"), 200)
}

// A refusal by another rule between the two does not count for their ban.
func TestABanOfRulesThatMeetHearsOfNoOther(t *testing.T) {
	onBothEngines(t, func(t *testing.T, options core.Options, _ core.Source) {
		banning := core.Rule{Seconds: 3600, Also: []core.Limit{core.PerDay(9)}, Ban: core.Ban{After: 1, For: 30 * time.Hour}}
		strict := core.Rule{Name: "strict", Seconds: 3600, MaxCount: 1}
		guard := newGuard(t, newLimiter(t, options), core.Rule{Seconds: 3600}, strict, banning)
		wantServed(t, guard, newView("GET", "/"), ok, 200, 429)
		if d := wantStatus(t, guard, newView("GET", "/"), 429).Refusal.Decision; d.Reason != core.LimitExceeded || d.Rule != "strict" {
			t.Errorf("%+v", d)
		}
	})
}

// A rule that is tried and one that holds never meet.
func TestTriedAndLiveRulesDoNotMeet(t *testing.T) {
	onBothEngines(t, func(t *testing.T, options core.Options, _ core.Source) {
		var heard decisions
		options.OnDecision = heard.note
		limiter := newLimiter(t, options)
		guard := newGuard(t, limiter, core.Rule{Seconds: 3600, MaxCount: 1, DryRun: true}, core.Rule{Seconds: 3600, MaxCount: 2})
		wantServed(t, guard, newView("GET", "/"), ok, 200, 200, 429)
		wantLeft(t, limiter, "GET /", me, core.PerHour(2), 0)
		heard.last(t, 6)
	})
}
