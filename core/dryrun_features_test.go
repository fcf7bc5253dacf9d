package core_test

import (
	"testing"
	"time"

	"github.com/accesslimit/accesslimit/core"
)

// The ban of a rule that is tried holds nobody, and none by hand reaches it.
func TestDryRunOfABan(t *testing.T) {
	onBothEngines(t, func(t *testing.T, options core.Options, _ core.Source) {
		var heard decisions
		options.OnDecision = heard.note
		limiter := newLimiter(t, options)
		rule := tried
		rule.MaxCount, rule.Ban = 2, core.Ban{After: 1, For: 30 * time.Hour}
		live := rule
		live.DryRun = false
		guard := newGuard(t, limiter, rule)
		wantServed(t, guard, newView("GET", "/"), ok, 200, 200, 200, 200)
		for i, reason := range []core.Reason{core.Allowed, core.Allowed, core.DryRunExceeded, core.DryRunExceeded} {
			if d := heard.heard[2*i]; d.Reason != reason {
				t.Errorf("call %d: %+v", i, d)
			}
		}
		other := newView("GET", "/").from("192.0.2.2")
		if _, err := limiter.Ban(background, "n", "ip:192.0.2.2", time.Hour); err != nil {
			t.Fatal(err)
		}
		heard.last(t, 8)
		wantStatus(t, guard, other, 200)
		if d := heard.heard[8]; d.Reason != core.Allowed {
			t.Errorf("a ban by hand reached a rule that is tried: %+v", d)
		}
		wantServed(t, newGuard(t, limiter, live), newView("GET", "/"), ok, 200, 200)
		wantServed(t, newGuard(t, limiter, live), other, ok, 429)
	})
}

// A tried ban holds in what is reported alone: after it came on, a call is reported although the
// limit has permits again.
func TestDryRunReportsItsBan(t *testing.T) {
	var heard decisions
	limiter, clock := atTestTime(t, core.Options{OnDecision: heard.note})
	rule := stern
	rule.DryRun, rule.Ban.After = true, 1
	guard := newGuard(t, limiter, rule, core.Rule{Name: "live", Seconds: 3600, MaxCount: 4})
	wantServed(t, guard, newView("GET", "/"), ok, 200, 200)
	for i, reason := range []core.Reason{core.DryRunExceeded, core.Allowed} {
		clock.add(5 * time.Minute)
		wantServed(t, guard, newView("GET", "/"), ok, 200)
		heard.last(t, 6+2*i)
		if d := heard.heard[4+2*i]; d.Reason != reason {
			t.Errorf("%d minutes into the ban of 10: %+v", 5+5*i, d)
		}
	}
	wantServed(t, guard, newView("GET", "/"), ok, 429) // who is banned by a tried rule is charged by the others all the same
}

func TestDryRunOfCountAndSlots(t *testing.T) {
	onBothEngines(t, func(t *testing.T, options core.Options, _ core.Source) {
		var heard decisions
		options.OnDecision = heard.note
		limiter := newLimiter(t, options)
		counting, inFlight := tried, atOnce(1)
		counting.Count = is(401)
		inFlight.Name, inFlight.DryRun = "slots", true
		guard := newGuard(t, limiter, counting, inFlight)
		wantServed(t, guard, newView("GET", "/"), 200, 200, 200)
		for i, d := range heard.heard {
			if d.Reason != core.Allowed {
				t.Errorf("decision %d: %+v; want what was given back to be there again", i, d)
			}
		}
		serveInside(t, guard, func() { wantServed(t, guard, newView("GET", "/"), ok, 200) })
		for _, d := range heard.heard[9:11] {
			if d.Reason != core.DryRunExceeded {
				t.Errorf("%+v", d)
			}
		}
	})
}

// A call that only a tried rule would refuse is finished like any other.
func TestDryRunExceededBesideCountAndSlots(t *testing.T) {
	onBothEngines(t, func(t *testing.T, options core.Options, _ core.Source) {
		var heard decisions
		options.OnDecision = heard.note
		limiter := newLimiter(t, options)
		counting := core.Rule{Name: "failures", Seconds: 3600, Count: is(401)}
		guard := newGuard(t, limiter, tried, counting, atOnceAs("slots", 2))
		wantServed(t, guard, newView("GET", "/"), 200, 200, 200, 200)
		wantLeft(t, limiter, "failures", me, core.PerHour(5), 5)
		wantLeft(t, limiter, "slots", me, slots(2), 2)
		wantServed(t, guard, newView("GET", "/"), 401, 401)
		failure := heard.last(t, 8).All[1]
		refund(t, limiter, failure, 1)
		wantLeft(t, limiter, "failures", me, core.PerHour(5), 5)
	})
}

// A cost that never fits into one limit of a tried rule is charged to none of them.
func TestDryRunOfACostThatNeverFits(t *testing.T) {
	var heard decisions
	rule := tried
	rule.MaxCount, rule.Also = 10, []core.Limit{core.PerDay(2)}
	rule.Cost = func(r core.Request) int { return int(r.Size()) }
	guard := newGuard(t, newLimiter(t, core.Options{OnDecision: heard.note}), rule)
	v := newView("GET", "/")
	for _, v.size = range []int64{3, 1} {
		wantServed(t, guard, v, ok, 200)
	}
	if d := heard.heard[0]; !d.Allowed || d.Reason != core.DryRunExceeded || d.Rule != "n" {
		t.Errorf("what never fits is heard as %+v", d)
	}
	heard.last(t, 3)
	if d := heard.heard[1]; d.Rule != "n" || d.Limit != core.PerDay(2) || d.Remaining != 1 || len(d.All) != 2 || d.All[1].Remaining != 9 {
		t.Errorf("the rule is heard of as %+v, want its limit that binds, and both in All", d)
	}
}
