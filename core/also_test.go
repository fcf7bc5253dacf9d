package core_test

import (
	"testing"
	"time"

	"github.com/accesslimit/accesslimit/core"
)

// mixed is a rule with a limit of every algorithm, of which the bucket is used up first, after
// three calls.
var mixed = core.Rule{
	Name: "n", Seconds: 3600, MaxCount: 7,
	Also: []core.Limit{
		{Max: 6, Window: 2 * time.Hour, Algorithm: core.SlidingLog}, {Max: 5, Window: time.Hour, Algorithm: core.FixedWindow},
		core.PerCalendarMonth(4, "UTC"), core.PerDay(1).Bucket(3), core.InFlight(8),
	},
}

func wantMixedLeft(t *testing.T, limiter *core.Limiter, subject string, charged int) {
	t.Helper()
	for i, limit := range append([]core.Limit{core.PerHour(7)}, mixed.Also...) {
		most := []int{7, 6, 5, 4, 3, 8}[i]
		if limit.Algorithm == core.Concurrency {
			charged = 0 // given back
		}
		wantLeft(t, limiter, "n", subject, limit, most-charged)
	}
}

func TestAllLimitsOfARuleOrNone(t *testing.T) {
	onBothEngines(t, func(t *testing.T, options core.Options, source core.Source) {
		var heard decisions
		options.OnDecision = heard.note
		limiter := newLimiter(t, options)
		guard := newGuard(t, limiter, mixed)
		for i, want := range []int{200, 200, 200, 429, 429} {
			wantServed(t, guard, newView("GET", "/"), ok, want)
			wantMixedLeft(t, limiter, me, min(3, i+1))
			d := heard.last(t, i+1)
			if len(d.All) != 6 || d.Limit != mixed.Also[3] || d.All[0].Limit != d.Limit || d.Remaining != max(0, 2-i) {
				t.Fatalf("call %d: the bucket does not bind, or is not first of %d: %+v", i, len(d.All), d)
			}
			for at, part := range d.All {
				if part.Rule != "n" || part.Key != me || part.Source != source || part.All != nil || part.Allowed != (at > 0 || want == 200) {
					t.Errorf("call %d, part %d: %+v", i, at, part)
				}
			}
		}
		wantServed(t, guard, newView("GET", "/").from("192.0.2.2"), ok, 200)
		wantMixedLeft(t, limiter, "ip:192.0.2.2", 1)
	})
}

// The limits of a rule hold also where MaxKeys is smaller than their number, in the process and
// while Redis is down.
func TestAllLimitsOfARuleInATinyTable(t *testing.T) {
	rule := mixed
	rule.OnStoreError = core.CountLocally(1)
	for name, options := range map[string]core.Options{"in process": {}, "falling back": deadRedis(t)} {
		for _, maxKeys := range []int{1, 2, 5} {
			options.MaxKeys = maxKeys
			guard := newGuard(t, newLimiter(t, options), rule)
			for i, want := range []int{200, 200, 200, 429, 429} {
				if got := serve(guard, newView("GET", "/"), ok); got != want {
					t.Errorf("%s, MaxKeys %d, call %d: %d, want %d", name, maxKeys, i, got, want)
				}
			}
		}
	}
}

// A refused caller hears of the limit that makes them wait longest.
func TestTheLongestWaitBinds(t *testing.T) {
	limiter, clock := atTestTime(t, core.Options{})
	rule := core.Rule{Name: "n", Seconds: 1, MaxCount: 1, Also: []core.Limit{{Max: 2, Window: time.Minute}, core.PerHour(100)}}
	guard := newGuard(t, limiter, rule)
	wantServed(t, guard, newView("GET", "/"), ok, 200)
	answer := wantStatus(t, guard, newView("GET", "/"), 429)
	if d := answer.Refusal.Decision; d.Limit != core.PerSecond(1) || len(answer.Refusal.Violated) != 1 || answer.Refusal.Violated[0] != "n" {
		t.Errorf("%+v, violated %q", d, answer.Refusal.Violated)
	}
	clock.add(2 * time.Second)
	wantServed(t, guard, newView("GET", "/"), ok, 200)
	answer = wantStatus(t, guard, newView("GET", "/"), 429)
	d, names := answer.Refusal.Decision, answer.Refusal.Violated
	if d.Limit != rule.Also[0] || d.RetryAfter < 50*time.Second || len(names) != 2 || names[0] != "n" || names[1] != "n-1m" {
		t.Errorf("%+v, violated %q", d, names)
	}
}

func TestTheCostIsForEachLimit(t *testing.T) {
	onBothEngines(t, func(t *testing.T, options core.Options, _ core.Source) {
		limiter := newLimiter(t, options)
		for weight, want := range map[int]int{4: 200, 5: 400} {
			rule := core.Rule{Name: "n", Seconds: 3600, MaxCount: 10, Also: []core.Limit{core.PerDay(4)}, Cost: cost(weight)}
			wantServed(t, newGuard(t, limiter, rule), newView("GET", "/"), ok, want)
		}
		wantLeft(t, limiter, "n", me, core.PerHour(10), 6) // what the larger cost did not fit into is not charged by the other
		wantLeft(t, limiter, "n", me, core.PerDay(4), 0)
	})
}

func TestHeadersOfSeveralLimits(t *testing.T) {
	rule := core.Rule{
		Name: "api", Seconds: 1, MaxCount: 10,
		Also: []core.Limit{
			{Max: 50, Window: 10 * time.Second}, core.PerCalendarDay(70, "UTC"), core.InFlight(3),
			core.PerHour(60), {Max: 80, Window: time.Hour, Algorithm: core.FixedWindow}, core.PerHour(90).Bucket(95),
			core.PerCalendarMonth(99, "UTC"), core.PerCalendarMonth(98, "Asia/Tokyo"),
			{Max: 40, Window: time.Second, Algorithm: core.FixedWindow},
		},
	}
	for name, style := range map[string]core.HeaderStyle{"draft 10": core.HeadersDraft10, "draft 7": core.HeadersDraft7, "X": core.HeadersXRateLimit} {
		t.Run(name, func(t *testing.T) {
			limiter, _ := atTestTime(t, core.Options{Headers: style})
			v := newView("GET", "/")
			wantStatus(t, newGuard(t, limiter, rule), v, 200)
			want := map[string]map[string]string{
				"draft 10": {
					"Ratelimit-Policy": `"api";q=10;w=1, "api-10s";q=50;w=10, "api-day";q=70;w=86400, "api-at-once";q=3;qu="concurrent-requests", ` +
						`"api-1h";q=60;w=3600, "api-1h-2";q=80;w=3600, "api-1h-3";q=95;w=3800, "api-month";q=99;w=2678400, "api-month-2";q=98;w=2678400, "api-1s";q=40;w=1`,
					"Ratelimit": `"api";r=9;t=2, "api-10s";r=49;t=11, "api-day";r=69;t=86400, "api-at-once";r=2, ` +
						`"api-1h";r=59;t=3713, "api-1h-2";r=79;t=3600, "api-1h-3";r=94;t=40, "api-month";r=98;t=2419200, "api-month-2";r=97;t=2386800, "api-1s";r=39;t=1`,
				},
				"draft 7": {"Ratelimit-Policy": "10;w=1", "Ratelimit": "limit=10, remaining=9, reset=2"}, // the slots are not told
				"X":       {"X-Ratelimit-Limit": "10", "X-Ratelimit-Remaining": "9"},
			}[name]
			for header, value := range want {
				if got := v.response[header]; len(got) != 1 || got[0] != value {
					t.Errorf("%s:\n%q, want\n%q", header, got, value)
				}
			}
			if name == "draft 10" {
				parseList(t, v.response["Ratelimit-Policy"])
				parseList(t, v.response["Ratelimit"])
			}
		})
	}
}

// Two rules of one name on one guard, each with further limits, are told apart.
func TestHeadersOfSeveralRulesWithSeveralLimits(t *testing.T) {
	rule := core.Rule{Name: "n", Seconds: 60, MaxCount: 9, Also: []core.Limit{core.PerHour(50)}, Key: core.ByHeader("X-Key")}
	byIP := rule
	byIP.Key = nil
	v := newView("GET", "/").with("X-Key", "secret")
	wantStatus(t, newGuard(t, newLimiter(t, core.Options{}), rule, byIP), v, 200)
	got := parseEntries(t, v.response["Ratelimit-Policy"], "q", "w")
	if !equal(got, []entry{{"n", 9, 60}, {"n-1h", 50, 3600}, {"n-1m", 9, 60}, {"n-1m-1h", 50, 3600}}) {
		t.Errorf("%v", got)
	}
}

// A full limit of calls in flight tells how long to wait; one with room has nothing to tell of
// time.
func TestHeadersOfCallsInFlight(t *testing.T) {
	limiter, clock := atTestTime(t, core.Options{})
	guard := newGuard(t, limiter, atOnce(1))
	serveInside(t, guard, func() {
		clock.add(20 * time.Second)
		v := newView("GET", "/")
		wantStatus(t, guard, v, 429)
		if got := v.response["Ratelimit"][0]; got != `"n";r=0;t=40` {
			t.Errorf("RateLimit: %s", got)
		}
		if got := v.response["Ratelimit-Policy"][0]; got != `"n";q=1;qu="concurrent-requests"` {
			t.Errorf("RateLimit-Policy: %s", got)
		}
	})
}
