package core_test

import (
	"context"
	"net/netip"
	"testing"
	"time"

	"github.com/accesslimit/accesslimit/core"
)

// Rules returns copies: changing them changes no guard.
func TestRulesAreCopies(t *testing.T) {
	limiter := newLimiter(t, core.Options{})
	rule := core.Rule{
		Name: "n", Seconds: 3600, MaxCount: 2, Paths: []string{"/a"}, Except: []string{"/a/b"}, Methods: []string{"GET"},
		Also: []core.Limit{core.PerDay(9)}, Plan: planOf("pro"), Plans: map[string]core.Limit{"pro": core.PerHour(3)},
	}
	guard, check := newGuard(t, limiter, rule), limiter.MustCheck(rule)
	for range 2 {
		for _, rules := range [][]core.Rule{guard.Rules(), check.Rules()} {
			r := rules[0]
			if len(rules) != 1 || r.Name != "n" || r.Seconds != 3600 || r.Paths[0] != "/a" || r.Except[0] != "/a/b" || r.Methods[0] != "GET" || r.Also[0] != core.PerDay(9) || r.Plans["pro"] != core.PerHour(3) {
				t.Errorf("%+v", rules)
			}
			r.Paths[0], r.Except[0], r.Methods[0], r.Also[0], r.Plans["pro"] = "/z", "/z", "PUT", core.PerDay(1), core.PerHour(1)
			rules[0] = core.Rule{}
		}
	}
	// Nor does changing the rule that it was made of.
	rule.Paths[0], rule.Except[0], rule.Methods[0], rule.Plans["pro"] = "/z", "/a", "POST", core.PerHour(1)
	wantServed(t, guard, newView("GET", "/a"), ok, 200, 200, 200, 429)
}

// Reset forgets the use of all rules, Also and Plans included, and of the routes that were called.
// It ends no ban, and affects no other subject.
func TestGuardReset(t *testing.T) {
	onBothEngines(t, func(t *testing.T, options core.Options, _ core.Source) {
		limiter := newLimiter(t, options)
		var plan string
		guard := newGuard(t, limiter,
			core.Rule{
				Name: "n", Seconds: 3600, MaxCount: 2, Also: []core.Limit{core.PerDay(9)},
				Plan:  func(core.Request) (string, error) { return plan, nil },
				Plans: map[string]core.Limit{"pro": core.PerHour(5).Bucket(5), "ours": core.Unlimited},
			},
			core.Rule{Name: "second", Limit: core.PerDay(100).Fixed(), Mode: core.DryRun},
			core.Rule{Limit: core.PerDay(50)},
		)
		for _, plan = range []string{"", "pro", "ours"} {
			wantStatus(t, guard, newView("GET", "/a"), 200)
			wantStatus(t, guard, newView("POST", "/b"), 200)
		}
		wantStatus(t, guard, newView("GET", "/a").From("192.0.2.2"), 200)
		awaitDryRuns(t, limiter)
		ban(t, limiter, "n", me, time.Hour)
		for _, want := range []bool{true, false} {
			if changed, err := guard.Reset(background, me); err != nil || changed != want {
				t.Fatalf("Reset: %v, %v; want %v", changed, err, want)
			}
		}
		wantStatus(t, guard, newView("GET", "/a"), 429)
		unban(t, limiter, "n")
		for _, left := range []core.Rule{
			named("n", core.PerHour(2)), named("n", core.PerDay(9)), named("n", core.PerHour(5).Bucket(5)), named("GET /a", core.PerDay(50)), named("POST /b", core.PerDay(50)),
		} {
			wantLeft(t, limiter, left.Name, me, left.Limit, left.Limit.Max)
		}
		wantLeft(t, limiter, "GET /a", "ip:192.0.2.2", core.PerDay(50), 49)
		for _, subject := range []string{"192.0.2.1", ""} {
			_, err := guard.Reset(background, subject)
			wantRuleError(t, err, "n", "subject", subject)
		}
	})
}

// However many limits a Reset forgets, it asks Redis once, so that it ends by Timeout.
func TestResetAsksOnce(t *testing.T) {
	limiter := newLimiter(t, deadRedis(t))
	also := []core.Limit{core.PerDay(9), core.PerDay(9).Log()}
	for i, reset := range []func(context.Context, string) (bool, error){
		limiter.MustCounter("n", core.PerHour(5), also...).Reset,
		limiter.MustGuard(core.Rule{Name: "n", Limit: core.PerHour(5), Also: also}, core.Rule{Name: "m", Seconds: 60}).Reset,
	} {
		_, err := reset(background, "s")
		if _, ok := err.(*core.StoreError); !ok {
			t.Errorf("%T %v", err, err)
		}
		var failures uint64
		for _, count := range limiter.Stats().StoreErrors {
			failures += count
		}
		if failures != uint64(i+1) {
			t.Errorf("%d failures of %d Resets", failures, i+1)
		}
	}
}

// A rule that is skipped does not count, refuse or identify. The rules beside it go on.
func TestSkip(t *testing.T) {
	onBothEngines(t, func(t *testing.T, options core.Options, _ core.Source) {
		identified := 0
		options.Identify = func(r core.Request) (string, error) { identified++; return whoSays(r) }
		limiter := newLimiter(t, options)
		skip := func(r core.Request) bool { return len(r.Header("X-Skip")) > 0 && r.Rule() == "n" }
		rule := core.Rule{Name: "n", Seconds: 3600, MaxCount: 1, Skip: skip}
		login, dry := rule, rule
		login.NeedLogin, dry.Mode = true, core.DryRun
		skipped := func() *fakeView { return newView("GET", "/").With("X-Skip", "1") }
		ban(t, limiter, "n", me, time.Hour)
		for name, rule := range map[string]core.Rule{"by IP": rule, "with a login": login, "dry": dry} {
			v := skipped()
			wantServed(t, newGuard(t, limiter, rule), v, ok, 200, 200, 200)
			if len(v.Response) > 0 || identified > 0 {
				t.Errorf("%s: the headers are %v, and Identify ran %d times", name, v.Response, identified)
			}
		}
		wantStatus(t, newGuard(t, limiter, rule), newView("GET", "/"), 429) // banned
		wantStatus(t, newGuard(t, limiter, login), newView("GET", "/"), 401)
		beside := newGuard(t, limiter, login, core.Rule{Name: "beside", Seconds: 3600, MaxCount: 2, Skip: skip})
		wantServed(t, beside, skipped(), ok, 200, 200, 429)
		unban(t, limiter, "n")
		wantLeft(t, limiter, "n", me, core.PerHour(1), 1)
	})
}

// An Event describes the call of its Decision. For a direct call, it has no description.
func TestEvents(t *testing.T) {
	var events []core.Event
	limiter := newLimiter(t, core.Options{ClientIP: proxies, OnDecision: func(_ context.Context, e core.Event) { events = append(events, e) }})
	rule := core.Rule{Name: "n", Seconds: 3600, MaxCount: 1, Key: core.Global}
	v := at("/users/:id", "/users/7").From("10.0.0.1").With("X-Forwarded-For", "203.0.113.7")
	wantServed(t, newGuard(t, limiter, rule), v, ok, 200, 429)
	limiter.MustCheck(rule).Allow(v, "s")
	for i, e := range events {
		if e.Method != "GET" || e.Route != "/users/:id" || e.Path != "/users/7" || e.ClientIP != netip.MustParseAddr("203.0.113.7") || e.Decision.Allowed != (i != 1) {
			t.Errorf("event %d: %+v", i, e)
		}
	}
	wantStatus(t, newGuard(t, limiter, rule), newView("GET", "/").From(""), 429)
	charge(t, limiter, "n", "direct", core.PerHour(1), 1)
	if len(events) != 5 || events[3].ClientIP.IsValid() || events[4].Method+events[4].Route+events[4].Path != "" || events[4].ClientIP.IsValid() {
		t.Errorf("without an address, and of a direct call: %+v", events[3:])
	}
}
