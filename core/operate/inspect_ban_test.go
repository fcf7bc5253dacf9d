package operate_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/accesslimit/accesslimit/core"
)

// A ban holds for all rules of its name that have one, also if a rule without comes first.
func TestInspectShowsTheBanOfAnotherRule(t *testing.T) {
	limiter := newLimiter(t, core.Options{})
	rule := core.Rule{Name: "api", Limit: core.PerHour(5)}
	attach(t, limiter, rule)
	rule.Ban = core.Ban{ByHand: true}
	attach(t, limiter, rule)
	ban(t, limiter, "api", "user:alice", time.Hour)
	if r := ruleOf(t, inspect(t, limiter, "user:alice"), "api"); r.Reason != core.Banned || r.BannedUntil.IsZero() {
		t.Errorf("%+v", r)
	}
}

// Strikes and bans are those that the next refusal continues.
func TestInspectShowsStrikes(t *testing.T) { synctest.Test(t, inspectStrikes) }

func inspectStrikes(t *testing.T) {
	limiter := newLimiter(t, core.Options{})
	guard := attach(t, limiter, core.Rule{Name: "api", Limit: core.PerMinute(1).Aligned(), Ban: core.Ban{After: 3, For: time.Minute, Max: time.Hour}})
	for i, want := range []struct{ bans, strikes int }{{0, 1}, {0, 2}, {1, 0}, {1, 1}, {1, 2}} {
		for range 3 {
			guard.Check(newView("GET", "/"))
		}
		r := ruleOf(t, inspect(t, limiter, "ip:192.0.2.1"), "api")
		if banned := i == 2; r.Bans != want.bans || r.Strikes != want.strikes || (r.Reason == core.Banned) != banned || r.BannedUntil.IsZero() == banned {
			t.Errorf("minute %d: %+v", i, r)
		}
		time.Sleep(time.Minute)
	}
	time.Sleep(time.Minute)
	if r := ruleOf(t, inspect(t, limiter, "ip:192.0.2.1"), "api"); r.Bans != 1 || r.Strikes != 0 {
		t.Errorf("strikes in a row are over: %+v", r)
	}
	time.Sleep(2 * time.Hour)
	if r := ruleOf(t, inspect(t, limiter, "ip:192.0.2.1"), "api"); r.Bans != 0 || r.Strikes != 0 {
		t.Errorf("the bans are forgotten: %+v", r)
	}
}
