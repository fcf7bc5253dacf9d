package core_test

import (
	"strings"
	"testing"
	"time"

	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/internal/redistest"
)

// stern bans for ten minutes who is refused in three minutes one after the other, then for 20, then
// for 25.
var stern = core.Rule{
	Name:  "n",
	Limit: core.PerMinute(1).Aligned(),
	Ban:   core.Ban{After: 3, For: 10 * time.Minute, Max: 25 * time.Minute},
}

// wantBan checks that the next call of a guard is refused by a ban that lasts so long.
func wantBan(t testing.TB, guard *core.Guard, lasts time.Duration) *core.Refusal {
	t.Helper()
	refusal := wantStatus(t, guard, newView("GET", "/"), 429).Refusal
	if d := refusal.Decision; d.Reason != core.Banned || d.RetryAfter != lasts || d.Remaining != 0 || refusal.Wait != lasts {
		t.Fatalf("%+v, want a ban of %v", d, lasts)
	}
	return refusal
}

// wantOver checks that the next call is refused, but not by a ban.
func wantOver(t testing.TB, guard *core.Guard) {
	t.Helper()
	refusal := wantStatus(t, guard, newView("GET", "/"), 429).Refusal
	if d := refusal.Decision; d.Reason != core.LimitExceeded || d.RetryAfter > time.Minute {
		t.Fatalf("%+v, want no ban", d)
	}
}

// refusedIn is a minute in which one call passes and others are refused, without a ban.
func refusedIn(t testing.TB, guard *core.Guard, clock *clock) {
	t.Helper()
	wantStatus(t, guard, newView("GET", "/"), 200)
	for range 5 {
		wantOver(t, guard)
	}
	clock.add(time.Minute)
}

// bannedAfterThree brings a ban on that lasts so long, waits for its end, and goes on to the next
// whole minute.
func bannedAfterThree(t testing.TB, guard *core.Guard, clock *clock, lasts time.Duration) {
	t.Helper()
	refusedIn(t, guard, clock)
	refusedIn(t, guard, clock)
	wantStatus(t, guard, newView("GET", "/"), 200)
	wantBan(t, guard, lasts)
	clock.add(lasts)
}

func TestABanComesLastsAndEnds(t *testing.T) {
	var heard decisions
	limiter, clock := atTestTime(t, core.Options{OnDecision: heard.note})
	guard := newGuard(t, limiter, stern)
	refusedIn(t, guard, clock)
	refusedIn(t, guard, clock)
	wantStatus(t, guard, newView("GET", "/"), 200)
	clock.add(10 * time.Second)
	wantBan(t, guard, 10*time.Minute) // not the 50 s of the limit: this is the call that brings it on
	if d := heard.last(t, 14); d.Reason != core.Banned || d.Limit.Max != 1 {
		t.Errorf("OnDecision heard %+v", d)
	}
	wantServed(t, guard, newView("GET", "/").from("192.0.2.2"), ok, 200)

	for minute := range 9 { // nor do calls during the ban make it any longer
		clock.add(time.Minute)
		wantBan(t, guard, time.Duration(9-minute)*time.Minute)
	}
	clock.add(time.Minute - time.Microsecond)
	wantBan(t, guard, time.Microsecond)
	clock.add(time.Microsecond)
	wantStatus(t, guard, newView("GET", "/"), 200)
	wantOver(t, guard)
}

func TestABannedCallerIsToldSo(t *testing.T) {
	limiter, _ := atTestTime(t, core.Options{})
	rule := stern
	rule.Ban.After = 1
	guard := newGuard(t, limiter, rule)
	wantStatus(t, guard, newView("GET", "/"), 200)
	v := newView("GET", "/")
	refusal := wantStatus(t, guard, v, 429).Refusal
	if !strings.Contains(string(refusal.Body), "abnormal-usage-detected") || !strings.Contains(refusal.Message, "another 10 min") {
		t.Errorf("%s", refusal.Body)
	}
	if got := v.response["Ratelimit"][0]; got != `"n";r=0;t=600` || len(refusal.Violated) != 1 || refusal.Code != 8 {
		t.Errorf("%s, violated %q, code %d", got, refusal.Violated, refusal.Code)
	}
	if got := v.response["Ratelimit-Policy"][0]; got != `"n";q=1;w=60` {
		t.Errorf("the policy tells of more than the limit: %s", got)
	}
	rule.Name, rule.Message = "own", "Write to us."
	own := newGuard(t, limiter, rule)
	wantStatus(t, own, newView("GET", "/"), 200)
	if refusal := wantBan(t, own, 10*time.Minute); refusal.Message != "Write to us." {
		t.Errorf("the message is %q", refusal.Message)
	}
}

// Only windows one after the other count.
func TestAWindowWithoutRefusalBreaksTheRow(t *testing.T) {
	limiter, clock := atTestTime(t, core.Options{})
	guard := newGuard(t, limiter, stern)
	refusedIn(t, guard, clock)
	refusedIn(t, guard, clock)
	wantStatus(t, guard, newView("GET", "/"), 200)
	clock.add(time.Minute)
	for range 2 {
		refusedIn(t, guard, clock)
	}
	clock.add(time.Minute)
	bannedAfterThree(t, guard, clock, 10*time.Minute)
}

func TestBansDoubleUpToMax(t *testing.T) {
	limiter, clock := atTestTime(t, core.Options{})
	guard := newGuard(t, limiter, stern)
	for _, minutes := range []time.Duration{10, 20, 25, 25} {
		bannedAfterThree(t, guard, clock, minutes*time.Minute)
	}
	rule := stern
	rule.Name, rule.Ban.Max = "same", 0
	same := newGuard(t, limiter, rule)
	for range 3 {
		bannedAfterThree(t, same, clock, 10*time.Minute)
	}
}

// Past bans are forgotten when Max has passed since the last one ended, without another refusal,
// and not a moment earlier.
func TestBansAreForgotten(t *testing.T) {
	for quiet, next := range map[time.Duration]time.Duration{25*time.Minute - time.Microsecond: 20 * time.Minute, 25 * time.Minute: 10 * time.Minute} {
		limiter, clock := atTestTime(t, core.Options{})
		rule := stern
		rule.Ban.After = 1
		guard := newGuard(t, limiter, rule)
		wantStatus(t, guard, newView("GET", "/"), 200)
		wantBan(t, guard, 10*time.Minute)
		clock.add(10*time.Minute + quiet)
		for status(guard.Check(newView("GET", "/"))) == 200 { // until it is refused again
		}
		wantBan(t, guard, next)
	}
}

// It holds wherever the name does, and nowhere else.
func TestABanHoldsForTheName(t *testing.T) {
	onBothEngines(t, func(t *testing.T, options core.Options, _ core.Source) {
		limiter := newLimiter(t, options)
		rule := core.Rule{Name: "n", Seconds: 3600, MaxCount: 1, Ban: core.Ban{After: 1, For: time.Hour}}
		here, there := newGuard(t, limiter, rule), newGuard(t, limiter, rule)
		rule.Name = "other"
		other := newGuard(t, limiter, rule)
		wantServed(t, here, newView("GET", "/"), ok, 200, 429)
		answer := wantStatus(t, there, newView("POST", "/x"), 429)
		if answer.Refusal.Decision.Reason != core.Banned {
			t.Errorf("%+v", answer.Refusal.Decision)
		}
		wantServed(t, other, newView("GET", "/"), ok, 200)
		wantServed(t, here, newView("GET", "/").from("192.0.2.2"), ok, 200)
	})
}

// A refusal by any limit of the rule counts, one by another rule beside it does not.
func TestWhichRefusalsBan(t *testing.T) {
	onBothEngines(t, func(t *testing.T, options core.Options, _ core.Source) {
		limiter := newLimiter(t, options)
		ban := core.Ban{After: 1, For: 30 * time.Hour}
		byAlso := newGuard(t, limiter, core.Rule{Name: "also", Seconds: 3600, Also: []core.Limit{core.PerDay(1)}, Ban: ban})
		wantServed(t, byAlso, newView("GET", "/"), ok, 200)
		d := wantStatus(t, byAlso, newView("GET", "/"), 429).Refusal.Decision
		if d.Reason != core.Banned || d.RetryAfter != 30*time.Hour || d.Limit != core.PerHour(5) || len(d.All) != 2 || d.All[1].Reason != core.LimitExceeded {
			t.Errorf("%+v", d)
		}
		beside := newGuard(t, limiter, core.Rule{Name: "strict", Seconds: 3600, MaxCount: 1}, core.Rule{Name: "banning", Seconds: 3600, Ban: ban})
		wantServed(t, beside, newView("GET", "/"), ok, 200, 429)
		d = wantStatus(t, beside, newView("GET", "/"), 429).Refusal.Decision
		if d.Reason != core.LimitExceeded || d.Rule != "strict" {
			t.Errorf("%+v", d)
		}
		wantLeft(t, limiter, "banning", me, core.PerHour(5), 4)
	})
}

// By Redis's own clock: three windows in a row, however often each is asked.
func TestABanInRedis(t *testing.T) {
	t.Parallel() // it waits for real time
	limiter := newLimiter(t, core.Options{Redis: redistest.Start(t).Client(t), Timeout: patient})
	window := 300 * time.Millisecond
	guard := newGuard(t, limiter, core.Rule{Name: "n", Limit: core.Limit{Max: 1, Window: window}, Ban: core.Ban{After: 3, For: time.Hour}})
	start, banned := time.Now(), time.Duration(0)
	eventually(t, "a ban", func() bool {
		answer := guard.Check(newView("GET", "/"))
		banned = time.Since(start)
		return answer.Refusal != nil && answer.Refusal.Decision.Reason == core.Banned
	})
	if banned < window {
		t.Errorf("banned after %v, within two windows of %v", banned, window)
	}
	d := wantStatus(t, guard, newView("GET", "/"), 429).Refusal.Decision
	if d.RetryAfter > time.Hour || d.RetryAfter < time.Hour-patient {
		t.Errorf("the ban lasts another %v", d.RetryAfter)
	}
}
