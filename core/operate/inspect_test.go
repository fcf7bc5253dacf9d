package operate_test

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/core/operate"
	"github.com/accesslimit/accesslimit/internal/redistest"
)

// Inspect shows all counters that rules can have for a subject, each rule once.
func TestInspect(t *testing.T) {
	onEveryDeployment(t, func(t *testing.T, options core.Options) {
		options.Identify = whoSays
		limiter := newLimiter(t, options)
		plan := func(r core.Request) (string, error) { return r.Query("plan"), nil }
		api := core.Rule{
			Name: "api", Limit: core.PerDay(5).Fixed(), Also: []core.Limit{core.Per(9, 20*time.Hour).Fixed()}, Key: core.ByUser, Plan: plan,
			Plans: map[string]core.Limit{"pro": core.PerDay(7).Fixed(), "slow": core.Per(2, 30*time.Hour).Fixed(), "vip": core.Unlimited},
		}
		computed := core.Rule{Name: "computed", Limit: core.PerDay(5).Fixed(), Key: core.ByUser, LimitFor: func(r core.Request) (core.Limit, error) {
			return core.ParseLimit(r.Query("limit"))
		}}
		guard := attach(t, limiter, api, computed)
		attach(t, limiter, api)
		dry := api
		dry.Mode, dry.Plans, dry.Plan = core.DryRun, nil, nil
		dryGuard := attach(t, limiter, dry)
		overridden := core.Rule{Name: "overridden", Limit: core.PerDay(5).Bucket(5), Key: core.ByUser, Ban: core.Ban{After: 2, For: time.Hour}}
		other := attach(t, limiter, overridden)
		unnamed := attach(t, limiter, core.Rule{Seconds: 3600, NeedLogin: true})
		never := attach(t, limiter, core.Rule{Seconds: 3600})
		call := func(guard *core.Guard, method, route, query string) core.Answer {
			return guard.Check(newView(method, route).As("alice").Asking(query))
		}
		for _, query := range []string{"limit=3/24h+fixed", "limit=4/30h+fixed&plan=pro", "plan=slow", "plan=vip", ""} {
			call(guard, "GET", "/", query)
		}
		call(dryGuard, "GET", "/", "")
		call(other, "GET", "/", "")
		call(unnamed, "HEAD", "/b", "")
		call(unnamed, "POST", "/a", "")
		want := `api enforce: 5/24h fixed rule 3+2, 7/24h fixed plan pro 3+4, 2/30h fixed plan slow 1+1, unlimited plan vip, 9/20h fixed also 4+5; allowed
computed enforce: 5/24h fixed rule 4+1, 4/30h fixed computed 1+3, any computed;
api dry_run: 5/24h fixed rule 1+4, 9/20h fixed also 1+8; allowed
overridden enforce: 5/24h burst 5 rule 1+4; allowed
GET /b enforce: 5/h rule 1+4; allowed
POST /a enforce: 5/h rule 1+4; allowed`
		awaitDryRuns(t, limiter)
		x := inspect(t, limiter, "user:alice")
		if got := rulesText(x); !sameLines(got, want) {
			t.Errorf("got\n%s\nwant\n%s", got, want)
		}
		if x.Reason != "" || x.Rule != "" || x.Subject != "user:alice" || x.NotListed != 0 {
			t.Errorf("%+v", x)
		}
		for _, r := range inspect(t, limiter, "user:bob").Rules {
			for _, l := range r.Limits {
				if l.Used != 0 || l.ResetAfter != 0 {
					t.Errorf("%s: %+v", r.Name, l)
				}
			}
		}
		runtime.KeepAlive(never)
		operated(t, limiter, other)
	})
}

// rulesText returns a line for each rule: its mode, its limits and the reason.
func rulesText(x operate.Explanation) string {
	var lines []string
	for _, r := range x.Rules {
		lines = append(lines, strings.TrimSpace(fmt.Sprintf("%s %v: %s; %s", r.Name, r.Mode, limitsText(r), r.Reason)))
	}
	return strings.Join(lines, "\n")
}

// operated checks what Inspect says of overrides and bans.
func operated(t *testing.T, limiter *core.Limiter, guard *core.Guard) {
	t.Helper()
	overrides, err := operate.New(limiter).Overrides("overridden")
	if err != nil {
		t.Fatal(err)
	}
	until := time.Now().Add(48 * time.Hour).UTC().Truncate(time.Microsecond)
	source := "override until " + until.Format(time.RFC3339Nano)
	for _, test := range []struct {
		override operate.Override
		limits   string
		reason   core.Reason
	}{
		{operate.Override{Limits: []core.Limit{core.PerDay(9).Bucket(9), core.PerDay(3)}, Until: until}, "9/24h burst 9 " + source + " 1+8, 3/24h " + source + " 0+3", core.Allowed},
		{per(core.PerDay(1).Bucket(1)), "1/24h burst 1 override 1+0", core.LimitExceeded},
		{operate.Override{Unlimited: true}, "unlimited override", core.Allowed},
		{operate.Override{Blocked: true, Until: until}, "5/24h burst 5 rule 1+4", core.Blocked},
	} {
		if err := overrides.Set(operate.WithActor(background, "carol", "because"), "user:alice", test.override); err != nil {
			t.Fatal(err)
		}
		r := ruleOf(t, inspect(t, limiter, "user:alice"), "overridden")
		if limitsText(r) != test.limits || r.Reason != test.reason || r.Override.Author != "carol" || r.Override.Note != "because" || !r.Override.Until.Equal(test.override.Until) {
			t.Errorf("%v: %s; %s, %+v", test.override, limitsText(r), r.Reason, r.Override)
		}
		if waits := test.reason == core.Blocked; waits != (r.RetryAfter > 47*time.Hour) {
			t.Errorf("%v: %v", test.override, r.RetryAfter)
		}
	}
	setOverride(t, limiter, "overridden", "user:alice", operate.Override{Unlimited: true})
	ban(t, limiter, "overridden", "user:alice", time.Hour)
	r := ruleOf(t, inspect(t, limiter, "user:alice"), "overridden")
	if left := time.Until(r.BannedUntil); left <= 59*time.Minute || left > time.Hour || r.Reason != core.Banned || r.RetryAfter <= 59*time.Minute {
		t.Errorf("%+v", r)
	}
	runtime.KeepAlive(guard)
}

// sameLines reports whether two texts have the same lines, in any order.
func sameLines(a, b string) bool {
	for line := range strings.Lines(a + "\n") {
		if !strings.Contains(b+"\n", line) {
			return false
		}
	}
	return len(a) == len(b)
}

// An Inspect does not know the plan of the next call, which is refused for certain only if all of the
// limits that it may have refuse.
func TestInspectOfSeveralPlans(t *testing.T) {
	limiter := newLimiter(t, core.Options{Identify: whoSays})
	guard := attach(t, limiter, core.Rule{
		Name: "api", Limit: core.PerHour(1).Fixed(), Key: core.ByUser,
		Plan: func(r core.Request) (string, error) { return r.Query("plan"), nil }, Plans: map[string]core.Limit{"pro": core.PerDay(1).Fixed()},
	})
	for _, plan := range []string{"pro", ""} {
		user := "user" + plan
		guard.Check(newView("GET", "/").As(user).Asking("plan=" + plan))
		if r := ruleOf(t, inspect(t, limiter, "user:"+user), "api"); r.Reason != "" {
			t.Errorf("with the plan %q used up: %+v", plan, r)
		}
		for range 2 {
			guard.Check(newView("GET", "/").As(user).Asking("plan=pro"))
			guard.Check(newView("GET", "/").As(user))
		}
		if r := ruleOf(t, inspect(t, limiter, "user:"+user), "api"); r.Reason != core.LimitExceeded {
			t.Errorf("with both used up: %+v", r)
		}
	}
}

// A subject may have any bytes, and none of them forges a line of the report.
func TestInspectAnySubject(t *testing.T) {
	onBothEngines(t, func(t *testing.T, options core.Options) {
		limiter := newLimiter(t, options)
		var subject string
		guard := attach(t, limiter, core.Rule{
			Name: "api", Limit: core.PerHour(300), Ban: core.Ban{After: 1, For: time.Hour}, Key: func(core.Request) (string, error) { return subject, nil },
		})
		all := make([]byte, 256)
		for i := range all {
			all[i] = byte(i)
		}
		subjects := []string{string(all), "a", "a\n\"b\" at main.go:1", "{a}", "%7Ba%7D", "\xff", strings.Repeat("long", 500)}
		for i := range all {
			subjects = append(subjects, "x"+string(all[i:i+1]))
		}
		for n, s := range subjects {
			subject = s
			for range 1 + n%3 {
				guard.Check(newView("GET", "/"))
			}
		}
		for n, s := range subjects {
			x := inspect(t, limiter, s)
			if r := ruleOf(t, x, "api"); r.Subject != s || r.Limits[0].Used != 1+n%3 {
				t.Fatalf("%q: %v", s, x)
			}
			for line := range strings.Lines(x.String()) {
				if strings.HasPrefix(line, `"b"`) {
					t.Errorf("forged: %s", x)
				}
			}
		}
	})
}

// However many rules are attached, an Inspect takes a bounded number of trips, and lists a bounded
// number of rules.
func TestInspectManyRules(t *testing.T) {
	server := redistest.Start(t)
	limiter := newLimiter(t, core.Options{Redis: server.Client(t), Timeout: patient})
	var guards []*core.Guard
	for i := range 4_100 {
		guards = append(guards, newGuard(t, limiter, core.Rule{Name: fmt.Sprint("rule", i), Limit: core.PerHour(5)}))
	}
	guards[7].Check(newView("GET", "/"))
	inspect(t, limiter, "ip:192.0.2.2") // the connections, and scripts that Redis does not have
	before := limiter.Stats().Trips
	x := inspect(t, limiter, "ip:192.0.2.1")
	if trips := limiter.Stats().Trips - before; trips > 4_000/16 {
		t.Errorf("%d trips", trips)
	}
	if len(x.Rules) != 2_000 || x.NotListed != 2_100 || limitsText(x.Rules[7]) != "5/h rule 1+4" {
		t.Errorf("%d rules, %d not listed", len(x.Rules), x.NotListed)
	}
	runtime.KeepAlive(guards)
}

// The list of guards is bounded, and forgets those that the service drops.
func TestAttachedGuards(t *testing.T) {
	limiter := newLimiter(t, core.Options{})
	first := attach(t, limiter, core.Rule{Name: "first", Seconds: 1})
	var guards []*core.Guard
	for range 4_099 {
		guards = append(guards, newGuard(t, limiter, core.Rule{Name: "many", Seconds: 1}))
	}
	explained := func() operate.Explanation {
		runtime.GC()
		return explain(t, limiter, operate.Call{Method: "GET", Path: "/"})
	}
	if x := explained(); x.Rules[0].Name != "first" || x.NotListed < 100 {
		t.Errorf("%d rules, %d not listed", len(x.Rules), x.NotListed)
	}
	runtime.KeepAlive(guards)
	guards = nil
	redistest.WaitUntil(func() bool { return explained().NotListed == 0 }, patient)
	if x := explained(); len(x.Rules) != 1 || x.NotListed != 0 {
		t.Errorf("%d rules, %d not listed", len(x.Rules), x.NotListed)
	}
	for range 2_000 { // as a handler might
		limiter.MustCheck(core.Rule{Name: "many", Seconds: 1})
	}
	last := attach(t, limiter, core.Rule{Name: "last", Seconds: 1})
	if x := explained(); ruleOf(t, x, "first").Name != x.Rules[0].Name || ruleOf(t, x, "last").Name != x.Rules[len(x.Rules)-1].Name {
		t.Errorf("%d rules", len(x.Rules))
	}
	runtime.KeepAlive(first)
	runtime.KeepAlive(last)
}
