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
		events := 0
		options.OnDecision = func(context.Context, core.Event) { events++ }
		limiter, v := newLimiter(t, options), newView("GET", "/")
		guard := newGuard(t, limiter, core.Rule{
			Name: "api", Limit: core.PerHour(2).Log(), Also: []core.Limit{core.PerDay(3)}, Ban: core.Ban{After: 2, For: 3 * time.Hour},
			Note: func(core.Request) string { t.Error("a note is made"); return "" },
		}, core.Rule{Name: "slot", Limit: core.InFlight(2)})
		ask := func(want string) core.OwnLimits {
			t.Helper()
			before, heard := limiter.Stats(), events
			own := wantOwn(t, guard, v, want)
			after := limiter.Stats()
			if source == core.FromRedis && after.Trips != before.Trips+1 {
				t.Errorf("%d trips", after.Trips-before.Trips)
			}
			if len(after.Decisions) != len(before.Decisions) || events != heard || len(v.response) > 0 {
				t.Errorf("%+v, %d events, headers %v", after.Decisions, events-heard, v.response)
			}
			return own
		}
		guard.OwnLimits(v) // a script that Redis does not have takes a trip more
		for range 5 {
			ask("api II of 2/h log, api III of 3/24h, slot II of 2 at once")
		}
		counters := []core.Counter{limiter.MustCounter("api", core.PerHour(2).Log()), limiter.MustCounter("api", core.PerDay(3))}
		if _, err := counters[0].AllowN(background, "ip:192.0.2.1", 1); err != nil {
			t.Fatal(err)
		}
		ask("api I of 2/h log, api III of 3/24h, slot II of 2 at once")
		if _, err := counters[0].AllowN(background, "ip:192.0.2.1", 1); err != nil {
			t.Fatal(err)
		}
		for range 5 { // were these strikes, the caller would be banned
			own := ask("api  of 2/h log, api III of 3/24h, slot II of 2 at once")
			if d := own.Limits[0]; d.Allowed || d.Reason != core.LimitExceeded || d.RetryAfter <= 0 || d.RetryAfter > time.Hour || d.Source != source {
				t.Errorf("%+v", d)
			}
		}
		if changed, err := operate.New(limiter).Ban(background, "api", "ip:192.0.2.1", 2*time.Hour); !changed || err != nil {
			t.Fatal(changed, err)
		}
		if d := ask("api  of 2/h log, api III of 3/24h, slot II of 2 at once").Limits[0]; d.Reason != core.Banned || d.RetryAfter <= time.Hour {
			t.Errorf("%+v", d)
		}
		v.from("192.0.2.2")
		ask("api II of 2/h log, api III of 3/24h, slot II of 2 at once")
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
		v := newView("GET", "/rate_limit").matching("tenant", "acme").asking("key=k").as("alice")
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
		limiter, v := newLimiter(t, options), newView("GET", "/rate_limit")
		bucket := core.PerMinute(2).Bucket(3)
		guard := newGuard(t, limiter,
			core.Rule{Name: "api", Limit: bucket, Also: []core.Limit{core.PerDay(9)}, Overrides: true},
			core.Rule{Name: "plan", Seconds: 60, Overrides: true, Plan: planOf("free"), Plans: map[string]core.Limit{"free": core.Unlimited}},
		)
		put := func(text string) {
			t.Helper()
			if err := core.PutOverride(limiter, "api", "ip:192.0.2.1", text); err != nil {
				t.Fatal(err)
			}
		}
		guard.OwnLimits(v) // a script that Redis does not have takes a trip more
		before := limiter.Stats().Trips
		wantOwn(t, guard, v, "api III of 2/m burst 3, api IIIIIIIII of 9/24h")
		if trips := limiter.Stats().Trips - before; options.Redis != nil && trips != 1 {
			t.Errorf("%d trips", trips)
		}
		put(core.StoredOverride(bucket, 4, 5, false, false, time.Time{}))
		if err := core.PutOverride(limiter, "plan", "ip:192.0.2.1", core.StoredOverride(core.PerMinute(5), 1, 0, false, false, time.Time{})); err != nil {
			t.Fatal(err)
		}
		own := wantOwn(t, guard, v, "api IIIII of 4/m burst 5, api IIIIIIIII of 9/24h, plan I of 1/m")
		const shown = `{"limits":[{"name":"api","limit":5,"remaining":5,"reset":0,"window":75,"policy":"\"api\";q=5;w=75"},`
		if _, _, body := own.Reply(); !strings.HasPrefix(string(body), shown) {
			t.Errorf("the body is %s", body)
		}
		put(core.StoredOverride(bucket, 0, 0, true, false, time.Time{}))
		wantOwn(t, guard, v, "plan I of 1/m")
		put(core.StoredOverride(bucket, 0, 0, false, true, time.Time{}))
		own = wantOwn(t, guard, v, "api  of 2/m burst 3")
		if d := own.Limits[0]; d.Allowed || d.Reason != core.Blocked || d.RetryAfter != 0 {
			t.Errorf("%+v", d)
		}
		const blocked = `{"limits":[{"name":"api","limit":3,"remaining":0,"window":90,"policy":"\"api\";q=3;w=90"}]}`
		if _, _, body := own.Reply(); string(body) != blocked {
			t.Errorf("the body is %s", body)
		}
		put(core.StoredOverride(bucket, 0, 0, false, true, time.Now().Add(time.Hour)))
		if d := wantOwn(t, guard, v, "api  of 2/m burst 3").Limits[0]; d.RetryAfter <= 0 || d.RetryAfter > time.Hour {
			t.Errorf("%+v", d)
		}
		wantOwn(t, guard, newView("GET", "/rate_limit").from("192.0.2.2"), "api III of 2/m burst 3, api IIIIIIIII of 9/24h")
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
	left := newView("GET", "/")
	left.ctx = ended
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
		{"alice", identified, newView("GET", "/").as("alice"), []core.Rule{login, byIP}, 200, "login IIIII of 5/m, ip IIIII of 5/m"},
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
