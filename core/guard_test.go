package core_test

import (
	"errors"
	"testing"
	"time"

	"github.com/accesslimit/accesslimit/core"
)

func TestMustGuardPanicsClearly(t *testing.T) {
	limiter := newLimiter(t, core.Options{})
	wantRuleError(t, panicked(func() { limiter.MustGuard() }), "", "rules", "[]")
	wantRuleError(t, panicked(func() { limiter.MustGuard(core.Rule{Name: "api"}) }), "api", "Seconds", "0")
	limiter.MustGuard(core.Rule{Seconds: 1})
}

// One that refuses leaves the others as they were, wherever it stands.
func TestRulesAreChargedAllOrNone(t *testing.T) {
	wide := core.Rule{Name: "wide", Seconds: 3600, MaxCount: 100}
	narrow := core.Rule{Name: "narrow", Seconds: 3600, MaxCount: 2}
	for name, rules := range map[string][]core.Rule{"the last refuses": {wide, narrow}, "the first refuses": {narrow, wide}} {
		t.Run(name, func(t *testing.T) {
			onBothEngines(t, func(t *testing.T, options core.Options, _ core.Source) {
				limiter := newLimiter(t, options)
				guard := newGuard(t, limiter, rules...)
				for _, want := range []int{200, 200, 429, 429} {
					wantStatus(t, guard, newView("GET", "/"), want)
				}
				wantLeft(t, limiter, "wide", "ip:192.0.2.1", core.PerHour(100), 98)
				wantLeft(t, limiter, "narrow", "ip:192.0.2.1", core.PerHour(2), 0)
			})
		})
	}
}

// All holds each limit, the one that binds first and the others in the order of the rules.
func TestTheBindingLimitComesFirst(t *testing.T) {
	rules := []core.Rule{
		{Name: "a", Seconds: 3600, MaxCount: 9},
		{Name: "b", Limit: core.PerMinute(2).Fixed()},
		{Name: "c", Limit: core.Limit{Max: 3, Window: 7200 * time.Second}.Fixed()},
		{Name: "d", Seconds: 3600, MaxCount: 9},
	}
	var heard decisions
	limiter := newLimiter(t, core.Options{OnDecision: heard.note})
	now := int64(3_600_000_000_000)
	core.UseClock(limiter, func() int64 { return now })
	guard := newGuard(t, limiter, rules...)
	for i, test := range []struct {
		status int
		order  string // binding first
		retry  time.Duration
	}{
		{200, "bacd", 0}, // the fewest permits left
		{200, "bacd", 0},
		{429, "bacd", time.Minute},               // only b refuses
		{200, "cabd", 0},                         // a minute later
		{429, "cabd", 2*time.Hour - time.Minute}, // only c refuses
	} {
		if i == 3 {
			now += 60_000_000
		}
		wantStatus(t, guard, newView("GET", "/"), test.status)
		d := heard.last(t, i+1)
		order := ""
		for _, one := range d.All {
			order += one.Rule
			if one.Key != "ip:192.0.2.1" || one.Source != core.FromMemory || one.All != nil {
				t.Errorf("call %d: %+v", i, one)
			}
		}
		if order != test.order || d.Rule != order[:1] || d.Allowed != (test.status == 200) {
			t.Errorf("call %d: %s binds, order %s, want %s", i, d.Rule, order, test.order)
		}
		if d.RetryAfter != test.retry {
			t.Errorf("call %d: RetryAfter %v, want %v", i, d.RetryAfter, test.retry)
		}
	}
}

// A named rule on two routes is one counter, and a direct call reaches it.
func TestNamedRulesAndDirectCallsShareCounters(t *testing.T) {
	onBothEngines(t, func(t *testing.T, options core.Options, _ core.Source) {
		options.Identify = whoSays
		limiter := newLimiter(t, options)
		rule := core.Rule{Name: "reply", Seconds: 3600, MaxCount: 3}
		wantStatus(t, newGuard(t, limiter, rule), newView("GET", "/a"), 200)
		wantStatus(t, newGuard(t, limiter, rule), newView("POST", "/b"), 200)
		if d, err := limiter.MustCounter("reply", core.PerHour(3)).Allow(background, "ip:192.0.2.1"); err != nil || d.Remaining != 0 {
			t.Errorf("the direct call: %+v, %v", d, err)
		}
		wantStatus(t, newGuard(t, limiter, rule), newView("GET", "/a"), 429)
		if _, err := resetOf(limiter, background, "reply", "ip:192.0.2.1", core.PerHour(3)); err != nil {
			t.Fatal(err)
		}
		wantStatus(t, newGuard(t, limiter, rule), newView("GET", "/a"), 200)

		post := newGuard(t, limiter, core.Rule{Name: "post", Seconds: 3600, NeedLogin: true})
		wantStatus(t, post, newView("POST", "/").as("alice"), 200)
		wantLeft(t, limiter, "post", "user:alice", core.PerHour(5), 4)

		unnamed := newGuard(t, limiter, core.Rule{Seconds: 3600})
		wantStatus(t, unnamed, newView("GET", "/users/:id"), 200)
		wantLeft(t, limiter, "GET /users/:id", "ip:192.0.2.1", core.PerHour(5), 4)
	})
}

func TestCheckInAHandler(t *testing.T) {
	limiter := newLimiter(t, core.Options{})
	rule := core.Rule{Name: "login", Seconds: 3600, MaxCount: 1}
	for i, test := range []struct {
		subject string
		want    int
	}{{"account:a", 200}, {"account:a", 429}, {"account:b", 200}, {"", 200}, {"", 429}, {"ip:192.0.2.1", 429}} {
		if got := status(checkRule(limiter, newView("POST", "/login"), rule, test.subject)); got != test.want {
			t.Errorf("call %d, %q: %d, want %d", i, test.subject, got, test.want)
		}
	}
}

// The framework handles a panic in a rule's function, and the next call is sound.
func TestAPanicInAFunctionOfARule(t *testing.T) {
	limiter := newLimiter(t, core.Options{})
	angry := true
	guard := newGuard(t, limiter, core.Rule{Name: "n", Seconds: 3600, Key: func(core.Request) (string, error) {
		if angry {
			panic(errors.New("angry"))
		}
		return "k", nil
	}})
	func() {
		defer func() {
			if recover() == nil {
				t.Error("the panic was swallowed")
			}
		}()
		guard.Check(newView("GET", "/"))
	}()
	angry = false
	wantStatus(t, guard, newView("GET", "/"), 200)
	wantLeft(t, limiter, "n", "k", core.PerHour(5), 4)
}
