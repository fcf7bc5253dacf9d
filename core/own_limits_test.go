package core_test

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/core/adapter"
	"github.com/accesslimit/accesslimit/core/operate"
	"github.com/accesslimit/accesslimit/internal/logtest"
)

// wantOwn asks for the caller's own limits, and compares the names and what remains of each.
func wantOwn(t *testing.T, guard *core.Guard, v adapter.View, want string) core.OwnLimits {
	t.Helper()
	own := guard.OwnLimits(v)
	var got []string
	for _, d := range own.Limits {
		got = append(got, d.Rule+" "+strings.Repeat("I", d.Remaining)+" of "+d.Limit.String())
	}
	if all := strings.Join(got, ", "); own.Refusal != nil || all != want {
		t.Errorf("the limits are %q, want %q; %+v", all, want, own.Refusal)
	}
	return own
}

// Asking charges nothing, is no strike, is in no count, and costs one trip. It says what the next
// call gets.
func TestOwnLimitsChargeNothing(t *testing.T) {
	onBothEngines(t, func(t *testing.T, options core.Options, source core.Source) {
		var heard decisions
		options.OnDecision = heard.note
		limiter, v, limit := newLimiter(t, options), newView("GET", "/"), core.PerHour(2).Log()
		guard := newGuard(t, limiter, core.Rule{
			Name: "api", Limit: limit, Also: []core.Limit{core.PerDay(3)}, Ban: core.Ban{After: 2, For: 3 * time.Hour},
			Note: func(core.Request) string { t.Error("a note is made"); return "" },
		}, core.Rule{Name: "slot", Limit: core.InFlight(2)})
		guard.OwnLimits(v) // a script that Redis does not have takes a trip more
		before := limiter.Stats()
		wantOwn(t, guard, v, "api II of 2/h log, api III of 3/24h, slot II of 2 at once")
		if after := limiter.Stats(); source == core.FromRedis && after.Trips != before.Trips+1 || len(after.Decisions)+len(v.Response) > 0 {
			t.Errorf("%d trips, %+v, headers %v", after.Trips-before.Trips, after.Decisions, v.Response)
		}
		charge(t, limiter, "api", me, limit, 2)
		for range 5 { // were these strikes, the caller would be banned
			d := wantOwn(t, guard, v, "api  of 2/h log, api III of 3/24h, slot II of 2 at once").Limits[0]
			if d.Allowed || d.Reason != core.LimitExceeded || d.RetryAfter <= 0 || d.RetryAfter > time.Hour || d.Source != source {
				t.Errorf("%+v", d)
			}
		}
		ban(t, limiter, "api", me, 2*time.Hour)
		own := wantOwn(t, guard, v, "api  of 2/h log")
		if d := own.Limits[0]; d.Reason != core.Banned || d.RetryAfter <= time.Hour {
			t.Errorf("%+v", d)
		}
		wantOwn(t, guard, newView("GET", "/").From("192.0.2.2"), "api II of 2/h log, api III of 3/24h, slot II of 2 at once")
		heard.last(t, 1) // of the charge
	})
}

// A caller is shown what the next call would report, for every rule that can be known here.
func TestWhichOwnLimitsAreShown(t *testing.T) {
	limiter := newLimiter(t, core.Options{Identify: core.FirstOf(func(r core.Request) (string, error) { _ = r.Path(); return "", nil }, whoSays)})
	byPath := func(r core.Request) (string, error) { return r.Path(), nil }
	plans := map[string]core.Limit{"pro": core.PerMinute(4), "free": core.Unlimited}
	minute := core.PerMinute(2)
	rule := func(name string, change func(*core.Rule)) core.Rule {
		r := core.Rule{Name: name, Limit: minute}
		change(&r)
		return r
	}
	for _, test := range []struct {
		rule core.Rule
		want string
	}{
		{rule("paths", func(r *core.Rule) { r.Paths, r.Methods = []string{"/api/**"}, []string{"POST"} }), "paths II of 2/m"},
		{rule("except", func(r *core.Rule) { r.Except = []string{"/rate_limit"} }), "except II of 2/m"},
		{rule("", func(r *core.Rule) { r.Paths = []string{"/api/**"} }), "/api/** II of 2/m"},
		{rule("", func(*core.Rule) {}), ""},
		{rule("dry", func(r *core.Rule) {
			r.Mode, r.Key = core.DryRun, func(core.Request) (string, error) { return "", errVerify }
		}), ""},
		{rule("skip", func(r *core.Rule) { r.Skip = func(r core.Request) bool { return r.Path() == "/rate_limit" } }), ""},
		{rule("no skip", func(r *core.Rule) { r.Skip = func(r core.Request) bool { return r.Path() == "/healthz" } }), "no skip II of 2/m"},
		{rule("cost", func(r *core.Rule) { r.Cost = cost(9) }), "cost II of 2/m"},
		{rule("user", func(r *core.Rule) { r.Key = core.ByUser }), "user II of 2/m"},
		{rule("by query", func(r *core.Rule) { r.Key = core.ByQuery("key") }), "by query II of 2/m"},
		{rule("by route", func(r *core.Rule) { r.Key = core.ByRoute }), ""},
		{rule("by path", func(r *core.Rule) { r.Key = core.Join(core.ByIP, byPath) }), ""},
		{rule("by param", func(r *core.Rule) { r.Key = core.ByParam("id") }), ""},
		{rule("by known param", func(r *core.Rule) { r.Key = core.ByParam("tenant") }), "by known param II of 2/m"},
		{rule("plan", func(r *core.Rule) { r.Plans, r.Plan = plans, planOf("pro") }), "plan IIII of 4/m"},
		{rule("no plan", func(r *core.Rule) { r.Plans, r.Plan = plans, planOf("") }), "no plan II of 2/m"},
		{rule("unlimited", func(r *core.Rule) { r.Plans, r.Plan = plans, planOf("free") }), ""},
		{rule("plan by path", func(r *core.Rule) { r.Plans, r.Plan = plans, byPath }), ""},
		{rule("computed", func(r *core.Rule) {
			r.LimitFor = func(core.Request) (core.Limit, error) { return core.PerMinute(3), nil }
		}), "computed III of 3/m"},
		{rule("login", func(r *core.Rule) { r.NeedLogin = true }), "login II of 2/m"},
	} {
		v := newView("GET", "/rate_limit").Matching("tenant", "acme").Asking("key=k").As("alice")
		own := wantOwn(t, newGuard(t, limiter, test.rule), v, test.want)
		if test.want == "" {
			if _, _, body := own.Reply(); string(body) != `{"limits":[]}` {
				t.Errorf("%s: the body is %s", test.rule.Name, body)
			}
		}
	}
	// Rules that share a counter are shown as they hold: once, by the stricter limit.
	wantOwn(t, newGuard(t, limiter, rule("shared", func(r *core.Rule) { r.Key = core.ByIP }), rule("shared", func(*core.Rule) {})), newView("GET", "/x"), "shared II of 2/m")
}

// A caller is shown the limits as an operator's overrides make them.
func TestOwnLimitsWithOverrides(t *testing.T) {
	onBothEngines(t, func(t *testing.T, options core.Options, _ core.Source) {
		options.Identify = whoSays
		limiter, v, bucket := newLimiter(t, options), newView("GET", "/rate_limit"), core.PerMinute(2).Bucket(3)
		guard := newGuard(t, limiter,
			core.Rule{Name: "api", Limit: bucket, Also: []core.Limit{core.PerDay(9)}},
			core.Rule{Name: "plan", Seconds: 60, Plan: planOf("free"), Plans: map[string]core.Limit{"free": core.Unlimited}},
		)
		o := operator{t, limiter, "api", bucket, []core.Limit{core.PerDay(9)}}
		wantOwn(t, guard, v, "api III of 2/m burst 3, api IIIIIIIII of 9/24h")
		setOverride(t, limiter, "api", me, operate.Override{Limits: []core.Limit{core.PerMinute(4).Bucket(5), core.PerDay(9)}})
		operator{t, limiter, "plan", core.PerMinute(5), nil}.max(me, 1)
		own := wantOwn(t, guard, v, "api IIIII of 4/m burst 5, api IIIIIIIII of 9/24h, plan I of 1/m")
		const shown = `{"limits":[{"name":"api","limit":5,"remaining":5,"reset":0,"window":75,"policy":"\"api\";q=5;w=75"},`
		if _, _, body := own.Reply(); !strings.HasPrefix(string(body), shown) {
			t.Errorf("the body is %s", body)
		}
		o.lift(me)
		wantOwn(t, guard, v, "plan I of 1/m")
		o.block(me, time.Time{})
		own = wantOwn(t, guard, v, "api  of 2/m burst 3")
		const blocked = `{"limits":[{"name":"api","limit":3,"remaining":0,"window":90,"policy":"\"api\";q=3;w=90"}]}`
		if _, _, body := own.Reply(); string(body) != blocked || own.Limits[0].Reason != core.Blocked || own.Limits[0].RetryAfter != 0 {
			t.Errorf("the body is %s: %+v", body, own.Limits[0])
		}
		login := newGuard(t, limiter, core.Rule{Name: "login", Seconds: 60, NeedLogin: true}, core.Rule{Name: "api", Limit: bucket, Also: []core.Limit{core.PerDay(9)}})
		wantOwn(t, login, v, "api  of 2/m burst 3")
	})
}

// Nobody is told limits that are not known.
func TestOwnLimitsThatAreNotKnown(t *testing.T) {
	identified, dead := newLimiter(t, core.Options{Identify: whoSays}), deadRedis(t)
	failing := newLimiter(t, core.Options{Identify: func(core.Request) (string, error) { return "", errVerify }})
	login, byIP := core.Rule{Name: "login", Seconds: 60, NeedLogin: true}, core.Rule{Name: "ip", Seconds: 60}
	unknown := core.Rule{Name: "n", Seconds: 60, Key: func(core.Request) (string, error) { return "", errVerify }}
	soft := func(r core.Rule) core.Rule { r.Name, r.Mode = "soft "+r.Name, core.Soft; return r }
	local := byIP
	local.OnStoreError = core.CountLocally(1)
	ended, end := context.WithCancel(background)
	end()
	left := newView("GET", "/").In(ended)
	for _, test := range []struct {
		name    string
		limiter *core.Limiter
		view    adapter.View
		rules   []core.Rule
		status  int
		want    string // if the status is 200
	}{
		{"nobody", identified, newView("GET", "/"), []core.Rule{login}, 401, ""},
		{"nobody, by IP", identified, newView("GET", "/"), []core.Rule{login, byIP}, 200, "ip IIIII of 5/m"},
		{"alice", identified, newView("GET", "/").As("alice"), []core.Rule{login, byIP}, 200, "login IIIII of 5/m, ip IIIII of 5/m"},
		{"who is not known", failing, newView("GET", "/"), []core.Rule{byIP, login}, 503, ""},
		{"who is not known, softly", failing, newView("GET", "/"), []core.Rule{byIP, soft(login)}, 200, "ip IIIII of 5/m"},
		{"nobody, softly", identified, newView("GET", "/"), []core.Rule{soft(login)}, 200, ""},
		{"whom to count softly is not known", identified, newView("GET", "/"), []core.Rule{byIP, soft(unknown)}, 200, "ip IIIII of 5/m"},
		{"by IP it does not matter", failing, newView("GET", "/"), []core.Rule{byIP}, 200, "ip IIIII of 5/m"},
		{"whom to count is not known", identified, newView("GET", "/"), []core.Rule{unknown}, 503, ""},
		{"no Redis", newLimiter(t, dead), newView("GET", "/"), []core.Rule{byIP}, 503, ""},
		{"no Redis, counted here", newLimiter(t, dead), newView("GET", "/"), []core.Rule{local}, 200, "ip IIIII of 5/m"},
		{"left", identified, left, []core.Rule{byIP}, 503, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			guard := newGuard(t, test.limiter, test.rules...)
			if test.status == 200 {
				wantOwn(t, guard, test.view, test.want)
				return
			}
			own, header := guard.OwnLimits(test.view), http.Header{}
			own.SetHeader(header)
			status, contentType, body := own.Reply()
			if status != test.status || contentType != "application/problem+json" || header.Get("Content-Type") != contentType || !strings.Contains(string(body), `"status":`) || len(own.Limits) > 0 {
				t.Errorf("%d %s %s, %v", status, contentType, body, own.Limits)
			}
			if stats := test.limiter.Stats(); len(stats.Decisions) > 0 {
				t.Errorf("%+v", stats.Decisions)
			}
		})
	}
}

// A function that panics while a caller asks does not break later calls.
func TestOwnLimitsAfterAPanic(t *testing.T) {
	limiter, wrong := newLimiter(t, core.Options{}), true
	guard := newGuard(t, limiter, core.Rule{Name: "n", Seconds: 60, Key: func(core.Request) (string, error) {
		if wrong {
			panic(errVerify)
		}
		return "s", nil
	}})
	if err := panicked(func() { guard.OwnLimits(newView("GET", "/")) }); err != errVerify {
		t.Errorf("it panics with %v", err)
	}
	wrong = false
	wantOwn(t, guard, newView("GET", "/"), "n IIIII of 5/m")
	if err := panicked(func() { new(core.Guard).OwnLimits(newView("GET", "/")) }); err == nil {
		t.Error("the zero Guard shows limits")
	}
}

// The reply is JSON with the words and the numbers of the headers.
func TestOwnLimitsAsJSON(t *testing.T) {
	limiter, now := newLimiter(t, core.Options{}), time.Date(2026, 11, 22, 22, 0, 0, 0, time.UTC).UnixMicro()
	core.UseClock(limiter, func() int64 { return now })
	guard := newGuard(t, limiter,
		core.Rule{Name: `say "hi"`, Limit: core.PerMinute(2).Fixed(), Also: []core.Limit{core.PerCalendarDay(9, "UTC")}},
		core.Rule{Name: "bucket", Limit: core.PerSecond(1).Bucket(5)},
		core.Rule{Name: "slot", Limit: core.InFlight(1)},
	)
	for i, want := range []string{
		`{"limits":[{"name":"say \"hi\"","limit":2,"remaining":2,"reset":0,"window":60,"policy":"\"say \\\"hi\\\"\";q=2;w=60"},` +
			`{"name":"say \"hi\"-day","limit":9,"remaining":9,"reset":0,"window":86400,"policy":"\"say \\\"hi\\\"-day\";q=9;w=86400"},` +
			`{"name":"bucket","limit":5,"remaining":5,"reset":0,"window":5,"policy":"\"bucket\";q=5;w=5"},` +
			`{"name":"slot","limit":1,"remaining":1,"policy":"\"slot\";q=1;qu=\"concurrent-requests\""}]}`,
		`{"limits":[{"name":"say \"hi\"","limit":2,"remaining":1,"reset":60,"window":60,"policy":"\"say \\\"hi\\\"\";q=2;w=60"},` +
			`{"name":"say \"hi\"-day","limit":9,"remaining":8,"reset":7200,"window":86400,"policy":"\"say \\\"hi\\\"-day\";q=9;w=86400"},` +
			`{"name":"bucket","limit":5,"remaining":4,"reset":1,"window":5,"policy":"\"bucket\";q=5;w=5"},` +
			`{"name":"slot","limit":1,"remaining":0,"reset":30,"policy":"\"slot\";q=1;qu=\"concurrent-requests\""}]}`,
	} {
		v := newView("GET", "/rate_limit")
		own := guard.OwnLimits(v)
		own.SetHeader(v.Response)
		status, contentType, body := own.Reply()
		if status != 200 || contentType != "application/json" || string(body) != want {
			t.Errorf("call %d: %d %s\n%s, want\n%s", i, status, contentType, body, want)
		}
		if len(v.Response) != 2 || v.Response.Get("Content-Type") != "application/json" || v.Response.Get("Cache-Control") != "no-store" {
			t.Errorf("the headers are %v", v.Response)
		}
		guard.Check(newView("GET", "/reply"))
	}
}

// A caller's own limits are shown in one form, whatever the headers are.
func TestOwnLimitsDoNotDependOnTheHeaders(t *testing.T) {
	limiter, _ := newDraft11(t, core.Options{})
	guard := newGuard(t, limiter, core.Rule{Name: "api", Limit: core.PerMinute(6).Bucket(6), Cost: core.CostBySize(1000)})
	for range 2 {
		v := newView("POST", "/")
		v.BodySize = 1000
		wantStatus(t, guard, v, 200)
	}
	const want = `{"limits":[{"name":"api","limit":6,"remaining":4,"reset":20,"window":60,"policy":"\"api\";q=6;w=60"}]}`
	if _, _, body := guard.OwnLimits(newView("GET", "/")).Reply(); string(body) != want {
		t.Errorf("%s, want %s", body, want)
	}
}

// hiddenPeer is a call whose adapter does not see the peer.
type hiddenPeer struct{ adapter.View }

func (hiddenPeer) PeerHidden() bool { return true }

// Where the peer is not known, "unix" trusts nobody: no caller chooses the address that is counted,
// or whose limits are shown.
func TestOwnLimitsOfAHiddenPeer(t *testing.T) {
	var log logtest.Log
	limiter := newLimiter(t, core.Options{ClientIP: core.ClientIP{TrustedProxies: []string{"unix"}}, Logger: log.Logger()})
	guard := newGuard(t, limiter, core.Rule{Name: "api", Limit: core.PerHour(2)})
	from := func(client string) adapter.View {
		v := newView("GET", "/").From("")
		v.Request.Set("X-Forwarded-For", client)
		return v
	}
	wantOwn(t, guard, hiddenPeer{from("192.0.2.7")}, "api II of 2/h")
	warned(t, &log, 0, "level=WARN") // of a call that is not counted
	wantStatus(t, guard, from("192.0.2.7"), 200)
	wantStatus(t, guard, hiddenPeer{from("192.0.2.8")}, 200)
	wantStatus(t, guard, hiddenPeer{from("192.0.2.9")}, 200)
	wantOwn(t, guard, from("192.0.2.7"), "api I of 2/h")
	wantOwn(t, guard, hiddenPeer{from("192.0.2.7")}, "api  of 2/h")
}

// The limits of a check are those of a subject, or of the rules' own.
func TestOwnLimitsOfACheck(t *testing.T) {
	limiter := newLimiter(t, core.Options{})
	check := limiter.MustCheck(core.Rule{Name: "n", Limit: core.PerHour(3)})
	v := newView("POST", "/login")
	check.Allow(v, "account:alice")
	for _, subject := range []string{"", "account:bob", "account:alice"} {
		left := 3
		if subject == "account:alice" {
			left = 2
		}
		own := check.OwnLimits(v, subject)
		if len(own.Limits) != 1 || own.Limits[0].Remaining != left {
			t.Errorf("%q: %+v, want %d left", subject, own, left)
		}
	}
	wantStatus(t, newGuard(t, limiter, core.Rule{Name: "n", Limit: core.PerHour(3)}), v, 200) // which takes the call's memory
	if own := check.OwnLimits(v, ""); own.Limits[0].Key != me || own.Limits[0].Remaining != 2 {
		t.Errorf("%+v", own)
	}
}
