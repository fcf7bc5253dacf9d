package core_test

import (
	"strings"
	"testing"
	"time"

	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/core/operate"
)

// wantBan checks that the next call of a guard is refused by a ban that lasts so long.
func wantBan(t testing.TB, guard *core.Guard, lasts time.Duration) *core.Refusal {
	t.Helper()
	refusal := wantStatus(t, guard, newView("GET", "/"), 429).Refusal
	if d := refusal.Decision; d.Reason != core.Banned || d.RetryAfter != lasts || d.Remaining != 0 || refusal.RetryAfter != lasts {
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

func TestABanComesLastsAndEnds(t *testing.T) {
	var heard decisions
	limiter, clock := atTestTime(t, core.Options{OnDecision: heard.note})
	guard := newGuard(t, limiter, stern)
	refusedIn(t, guard, clock)
	refusedIn(t, guard, clock)
	wantStatus(t, guard, newView("GET", "/"), 200)
	clock.add(10 * time.Second)
	wantBan(t, guard, 10*time.Minute) // not the 50 s of the limit: this call starts the ban
	if d := heard.last(t, 14); d.Reason != core.Banned || d.Limit.Max != 1 {
		t.Errorf("OnDecision received %+v", d)
	}
	wantServed(t, guard, newView("GET", "/").from("192.0.2.2"), ok, 200)

	for minute := range 9 { // calls during the ban do not make it longer
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
		t.Errorf("RateLimit-Policy shows more than the limit: %s", got)
	}
	rule.Name, rule.Message = "own", "Write to us."
	own := newGuard(t, limiter, rule)
	wantStatus(t, own, newView("GET", "/"), 200)
	if refusal := wantBan(t, own, 10*time.Minute); refusal.Message != "Write to us." {
		t.Errorf("the message is %q", refusal.Message)
	}
}

// byHand is a rule that checks bans, but never starts one.
var byHand = core.Rule{Name: "n", Seconds: 3600, MaxCount: 2, Ban: core.Ban{ByHand: true}}

func unban(t testing.TB, limiter *core.Limiter, subject string) {
	t.Helper()
	if _, err := operate.New(limiter).Unban(background, "n", subject); err != nil {
		t.Fatal(err)
	}
}

// Bans and resets of an address's subject apply to the calls of that address.
func TestActsOnTheSubjectOfAnAddress(t *testing.T) {
	onBothEngines(t, func(t *testing.T, options core.Options, _ core.Source) {
		limiter := newLimiter(t, options)
		guard := newGuard(t, limiter, byHand)
		caller := newView("GET", "/").from("2001:db8::1")
		subject := limiter.IPSubject(caller.peer)
		ban(t, limiter, "n", subject, time.Hour)
		wantStatus(t, guard, caller, 429)
		unban(t, limiter, subject)
		wantServed(t, guard, caller, ok, 200, 200, 429)
		if _, err := resetOf(limiter, background, "n", subject, core.PerHour(2)); err != nil {
			t.Fatal(err)
		}
		wantServed(t, guard, caller, ok, 200)
		for _, subject := range []string{"192.0.2.0/24", "192.0.2.1:80", "user:192.0.2.1", "1234"} {
			unban(t, limiter, subject)
		}
	})
}

func TestWrongBans(t *testing.T) {
	limiter := newLimiter(t, core.Options{})
	newGuard(t, limiter, core.Rule{Name: "deaf", Seconds: 60})
	newGuard(t, limiter, byHand)
	const year = 366 * 24 * time.Hour
	for _, test := range []struct {
		name, counter, subject string
		span                   time.Duration
		rule, field, value     string
	}{
		{"no end", "n", "s", 0, "n", "span", "0s"},
		{"backwards", "n", "s", -time.Hour, "n", "span", "-1h"},
		{"no time", "n", "s", time.Millisecond - 1, "n", "span", "999.999µs"},
		{"for ever", "n", "s", year + 1, "n", "span", "8784h"},
		{"a rule that would not see it", "deaf", "s", time.Hour, "deaf", "Ban", "nobody"},
	} {
		t.Run(test.name, func(t *testing.T) {
			wantRuleError(t, errorOf(operate.New(limiter).Ban(background, test.counter, test.subject, test.span)), test.rule, test.field, test.value)
		})
	}
	for _, span := range []time.Duration{time.Millisecond, year} {
		ban(t, limiter, "n", "s", span)
	}
	if _, err := operate.New(limiter).Ban(background, "of another process", "s", time.Hour); err != nil {
		t.Errorf("this limiter has no rules of the name: %v", err)
	}
	heeding := core.Rule{Name: "deaf", Seconds: 60, Ban: core.Ban{ByHand: true}}
	newGuard(t, limiter, heeding)
	newGuard(t, limiter, core.Rule{Name: "deaf", Seconds: 60})
	if _, err := operate.New(limiter).Ban(background, "deaf", "s", time.Hour); err != nil {
		t.Errorf("a rule of the name has Ban set now: %v", err)
	}
}

func TestBanText(t *testing.T) {
	for ban, want := range map[core.Ban]string{
		{}:                         "nobody",
		{ByHand: true}:             "by hand",
		{After: 3, For: time.Hour}: "after 3 windows, for 1h",
		{After: 1, For: 90 * time.Second, Max: 24 * time.Hour}: "after 1 window, for 1m30s, up to 24h",
	} {
		if got := ban.String(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
