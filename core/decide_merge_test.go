package core_test

import (
	"context"
	"testing"
	"time"

	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/core/operate"
	"github.com/accesslimit/accesslimit/internal/redistest"
)

// Two buckets with one counter hold together: the slower refill of one, the smaller burst of the
// other.
func TestTwoBucketsInOneCounterHoldTogether(t *testing.T) {
	fast := core.Rule{Limit: core.PerHour(1000).Bucket(3)}
	slow := core.Rule{Limit: core.PerHour(10).Bucket(20)}
	for name, rules := range map[string][]core.Rule{"fast first": {fast, slow}, "slow first": {slow, fast}} {
		t.Run(name, func(t *testing.T) {
			guard := newGuard(t, newLimiter(t, core.Options{}), rules...)
			for range 3 {
				wantStatus(t, guard, newView("GET", "/"), 200)
			}
			answer := wantStatus(t, guard, newView("GET", "/"), 429)
			if wait := answer.Refusal.Wait.Seconds(); wait < 300 || wait > 360 {
				t.Errorf("the wait is %v s, want that of the slow bucket: 360", wait)
			}
		})
	}
}

// A mistake that would panic in a request panics when the service is put together.
func TestNilFunctionsPanicAtOnce(t *testing.T) {
	for name, build := range map[string]func(){
		"BearerToken":  func() { core.BearerToken(nil) },
		"Cookie":       func() { core.Cookie("session", nil) },
		"FirstOf":      func() { core.FirstOf(nil) },
		"Join":         func() { core.Join(core.ByIP, nil) },
		"ContextValue": func() { core.ContextValue([]string{}) },
		"ByValue":      func() { core.ByValue(nil) },
	} {
		t.Run(name, func(t *testing.T) {
			defer func() {
				if recover() == nil {
					t.Error("no panic")
				}
			}()
			build()
		})
	}
}

// A caller whose deadline passes while a limit is looked up gets that answer, and is not asked to
// log in.
func TestCallerWhoseContextEndsIsNotAskedToLogIn(t *testing.T) {
	var reasons []core.Reason
	options := deadRedis(t)
	options.Identify = func(core.Request) (string, error) { return "", nil }
	options.OnDecision = func(_ context.Context, e core.Event) {
		d := e.Decision
		reasons = append(reasons, d.Reason)
	}
	guard := newGuard(t, newLimiter(t, options), core.Rule{Name: "ip", Seconds: 60}, core.Rule{Name: "user", Seconds: 60, NeedLogin: true})
	ctx, cancel := context.WithCancel(background)
	v := newView("GET", "/")
	v.ctx = &endsLater{Context: ctx, end: cancel, after: 1}
	guard.Check(v)
	if len(reasons) != 1 || reasons[0] != core.ContextEnded {
		t.Errorf("the reasons are %v, want %s", reasons, core.ContextEnded)
	}
}

// endsLater is a context that ends after so many calls of Err.
type endsLater struct {
	context.Context
	end   context.CancelFunc
	after int
}

func (e *endsLater) Err() error {
	if e.after--; e.after < 0 {
		e.end()
	}
	return e.Context.Err()
}

// Two rules with one counter hold together, whatever counts it: the smaller limit, and the larger
// cost, charged once.
func TestRulesInOneCounter(t *testing.T) {
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
				// One entry for each of three calls.
				if got := parseList(t, v.response["Ratelimit-Policy"]); len(got) != 3 {
					t.Errorf("%d entries for three calls of one counter", len(got))
				}
				wantServed(t, newGuard(t, limiter, rule(4, 3), rule(8, 5)), newView("GET", "/"), ok, 400)
			})
		}
	})
}

// smaller returns the limit with another Max, and a bucket with another Burst.
func smaller(limit core.Limit, n int) core.Limit {
	if limit.Algorithm == core.TokenBucket {
		limit.Burst = n
		return limit
	}
	limit.Max = n
	return limit
}

// If two rules of a call have one counter of slots, the call takes one slot, and gives it back.
func TestSlotsInOneCounter(t *testing.T) {
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

// If any of the rules must not pass uncounted, none of them does.
func TestPoliciesInOneCounter(t *testing.T) {
	open, closed := core.Rule{Name: "n", Seconds: 60}, core.Rule{Name: "n", Seconds: 60, OnStoreError: core.FailClosed}
	for name, rules := range map[string][]core.Rule{"closed last": {open, closed}, "closed first": {closed, open}} {
		t.Run(name, func(t *testing.T) {
			wantServed(t, newGuard(t, newLimiter(t, deadRedis(t)), rules...), newView("GET", "/"), ok, 503)
		})
	}
}

// Two rules have one counter, and one of them has a Ban. The ban counts refusals by the limit that
// both allow, whichever rule has it.
func TestABanOfRulesInOneCounter(t *testing.T) {
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
				if _, err := operate.New(limiter).Unban(background, "GET /", me); err != nil {
					t.Error(err)
				}
				wantLeft(t, limiter, "GET /", me, core.PerHour(2), 0)
			})
		})
	}
}

// Two rules with one ban have two counters if a plan changes the limit of one. The ban counts
// refusals by both.
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

// A ban finds the counters that it watches among counters that are asked separately: those of other
// servers, and those that nobody counts meanwhile.
func TestABanOfRulesInOneCounterOnSeveralServers(t *testing.T) {
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

// A refusal does not count twice because two rules have the same ban.
func TestABanOfRulesInOneCounterCountsARefusalOnce(t *testing.T) {
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
func TestABanOfRulesInOneCounterIgnoresOtherRules(t *testing.T) {
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

// A rule in DryRun and a live rule never share a counter.
func TestDryRunSharesNoCounterWithALiveRule(t *testing.T) {
	onBothEngines(t, func(t *testing.T, options core.Options, _ core.Source) {
		var heard decisions
		options.OnDecision = heard.note
		limiter := newLimiter(t, options)
		guard := newGuard(t, limiter, core.Rule{Seconds: 3600, MaxCount: 1, Mode: core.DryRun}, core.Rule{Seconds: 3600, MaxCount: 2})
		wantServed(t, guard, newView("GET", "/"), ok, 200, 200, 429)
		wantLeft(t, limiter, "GET /", me, core.PerHour(2), 0)
		heard.last(t, 6)
	})
}

// mixed is a rule with a limit of every algorithm. Its bucket is used up first, after three calls.
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

// The limits of a rule hold even if MaxKeys is smaller than their number, both in process and while
// Redis is down.
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

// A refused caller is shown the limit that makes them wait longest.
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
		// A call that the larger cost refuses is not charged for the smaller one either.
		wantLeft(t, limiter, "n", me, core.PerHour(10), 6)
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
				// The slots are not shown.
				"draft 7": {"Ratelimit-Policy": "10;w=1", "Ratelimit": "limit=10, remaining=9, reset=2"},
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

// Two rules of one name on one guard, each with further limits, have different titles.
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

// A full limit of calls in flight shows how long to wait. One with free slots shows no time.
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
