package operate_test

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/core/operate"
)

// explain explains a call that the store answers for.
func explain(t *testing.T, limiter *core.Limiter, info operate.Call) operate.Explanation {
	t.Helper()
	x, err := operate.New(limiter).Explain(background, info)
	if err != nil {
		t.Fatal(err)
	}
	return x
}

// inspect inspects a subject that the store answers for.
func inspect(t *testing.T, limiter *core.Limiter, subject string) operate.Explanation {
	t.Helper()
	x, err := operate.New(limiter).Inspect(background, subject)
	if err != nil {
		t.Fatal(err)
	}
	return x
}

// ruleOf returns what an Explanation says of a rule, which it has once.
func ruleOf(t *testing.T, x operate.Explanation, name string) operate.ExplainedRule {
	t.Helper()
	at := slices.IndexFunc(x.Rules, func(r operate.ExplainedRule) bool { return r.Name == name })
	if at < 0 || slices.ContainsFunc(x.Rules[at+1:], func(r operate.ExplainedRule) bool { return r.Name == name }) {
		t.Fatalf("%q is not there once: %v", name, x)
	}
	return x.Rules[at]
}

// limitsText returns the limits of a rule as "5/m rule 2+3": 2 are used and 3 left.
func limitsText(r operate.ExplainedRule) string {
	var texts []string
	for _, l := range r.Limits {
		text := fmt.Sprintf("%v %s", l.Limit, l.Source)
		if l.Limit == (core.Limit{}) {
			text = "any " + l.Source
		}
		if !l.Until.IsZero() {
			text += " until " + l.Until.Format(time.RFC3339Nano)
		}
		if l.Known {
			text += fmt.Sprintf(" %d+%d", l.Used, l.Remaining)
		}
		texts = append(texts, text)
	}
	return strings.Join(texts, ", ")
}

const from1 = "192.0.2.1:4711"

// An explanation says what the next call gets, and charges nothing.
func TestExplainChargesNothing(t *testing.T) {
	onBothEngines(t, func(t *testing.T, options core.Options) {
		heard, notes := 0, 0
		options.OnDecision = func(context.Context, core.Event) { heard++ }
		limiter := newLimiter(t, options)
		guard := attach(t, limiter, core.Rule{
			Name: "api", Limit: core.PerHour(2).Log(), Also: []core.Limit{core.PerDay(3)}, Ban: core.Ban{After: 2, For: 3 * time.Hour},
			Note: func(core.Request) string { notes++; return "" },
		}, core.Rule{Name: "slot", Limit: core.InFlight(2)})
		counter := limiter.MustCounter("api", core.PerHour(2).Log())
		call := operate.Call{Method: "GET", Path: "/", RemoteAddr: from1}
		explain(t, limiter, call) // a script that Redis does not have takes a trip more
		for used := range 3 {
			before := limiter.Stats()
			for range 5 { // were these strikes, the caller would be banned
				x := explain(t, limiter, call)
				api := ruleOf(t, x, "api")
				if want := fmt.Sprintf("2/h log rule %d+%d, 3/24h also 0+3", used, 2-used); limitsText(api) != want || limitsText(ruleOf(t, x, "slot")) != "2 at once rule 0+2" {
					t.Fatalf("%s, want %s\n%v", limitsText(api), want, x)
				}
				if refused := used == 2; api.Refuses != refused || (x.Reason == core.LimitExceeded) != refused || (x.Rule == "api") != refused || (x.RetryAfter > 59*time.Minute) != refused {
					t.Fatalf("%d used: %v", used, x)
				}
			}
			after := limiter.Stats()
			if options.Redis != nil && after.Trips != before.Trips+5 { // and as many for the ban, which are not counted
				t.Errorf("5 explanations took %d trips", after.Trips-before.Trips)
			}
			if len(after.Decisions) != len(before.Decisions) || heard != used || notes > 0 {
				t.Errorf("%+v, %d events, %d notes", after.Decisions, heard, notes)
			}
			if _, err := counter.Allow(background, "ip:192.0.2.1"); err != nil {
				t.Fatal(err)
			}
		}
		guard.Check(newView("GET", "/")) // which is a strike
		if x := explain(t, limiter, call); ruleOf(t, x, "api").Strikes != 1 {
			t.Errorf("%v", x)
		}
	})
}

// The report can be read, in words and as JSON.
func TestExplanationInWords(t *testing.T) { synctest.Test(t, explanationInWords) }

func explanationInWords(t *testing.T) {
	time.Sleep(time.Until(time.Date(2026, 11, 22, 22, 0, 0, 0, time.UTC)))
	limiter := newLimiter(t, core.Options{Identify: whoSays})
	guard := attach(t, limiter,
		core.Rule{Name: "api", Limit: core.PerMinute(2).Fixed(), Also: []core.Limit{core.PerCalendarDay(9, "UTC")}, Paths: []string{"/api/**"}},
		core.Rule{Name: "post", Limit: core.PerSecond(1).Bucket(5), Methods: []string{"POST", "PUT"}},
	)
	for range 2 {
		guard.Check(newView("GET", "/api/x"))
	}
	x := explain(t, limiter, operate.Call{Method: "GET", Path: "/api/x?page=2", RemoteAddr: from1, User: "al\nice"})
	place := ruleOf(t, x, "api").Place
	at := " at " + place[strings.LastIndex(place, "/")+1:] + ", called for GET /api/x"
	want := `GET /api/x from 192.0.2.1 by user "al\nice": refused by "api": limit_exceeded. It passes in 1 min.

"api"` + at + `
    route "/api/x" matches "/api/**"
    subject "ip:192.0.2.1"
    2/m fixed (rule): 2 used, 0 left, passes in 1 min, all back in 1 min
    9/day@UTC (also): 2 used, 7 left, all back in 2 h
    limit_exceeded  <- refuses the call

"post"` + at + ` does not apply: method GET is not POST or PUT
`
	if got := x.String(); got != want {
		t.Errorf("got:\n%s\nwant:\n%s", got, want)
	}
	text, err := json.Marshal(x)
	if err != nil {
		t.Fatal(err)
	}
	quoted, _ := json.Marshal(place)
	wantJSON := `{"time":"2026-11-22T22:00:00Z","method":"GET","route":"/api/x","path":"/api/x","client_ip":"192.0.2.1","user":"al\nice",` +
		`"reason":"limit_exceeded","rule":"api","rules":[` +
		`{"name":"api","place":` + string(quoted) + `,"routes":["GET /api/x"],"applies":true,"because":"route \"/api/x\" matches \"/api/**\"",` +
		`"subject":"ip:192.0.2.1","cost":1,"limits":[{"limit":"2/m fixed","source":"rule","known":true,"used":2,"remaining":0,"retry_after":60,"reset_after":60},` +
		`{"limit":"9/day@UTC","source":"also","known":true,"used":2,"remaining":7,"reset_after":7200}],"reason":"limit_exceeded","refuses":true,"retry_after":60},` +
		`{"name":"post","place":` + string(quoted) + `,"routes":["GET /api/x"],"applies":false,"because":"method GET is not POST or PUT"}],"retry_after":60}`
	if string(text) != wantJSON {
		t.Errorf("got  %s\nwant %s", text, wantJSON)
	}
}

// A call is explained by what a Call says of it.
func TestCall(t *testing.T) {
	limiter := newLimiter(t, core.Options{
		Identify: core.BearerToken(func(_ context.Context, token string) (string, error) { return token, nil }),
		ClientIP: core.ClientIP{TrustedProxies: []string{"10.0.0.0/8"}},
	})
	type key struct{}
	attach(t, limiter, core.Rule{Name: "api", Seconds: 1, Key: func(r core.Request) (string, error) {
		user, err := r.User()
		return strings.Join([]string{
			r.Method(), r.Path(), r.Route(), r.Host(), r.ClientIP().String(), r.RemoteAddr().String(), r.Query("a"), r.Param("id"), r.Cookie("c"),
			strings.Join(r.Header("x-api-key"), "+"), strings.Join(r.Header("Host"), "+"), fmt.Sprint(r.Size()), fmt.Sprint(r.Value(key{})), user, r.Rule(),
		}, "|"), err
	}})
	ctx := context.WithValue(background, key{}, "value")
	for _, test := range []struct {
		info operate.Call
		want string
	}{
		{operate.Call{}, "||||invalid IP|invalid IP||||||-1|value||api"},
		{
			operate.Call{
				Method: "GET", Path: "/x/a%2Fb?a=1&a=2", Route: "/x/:id", Host: "Example.org:80", RemoteAddr: "[2001:db8::1]:80",
				Header: http.Header{"cookie": {"c=d"}, "X-API-Key": {"k", "l"}, "Content-Length": {"7"}, "Authorization": {"Bearer bob"}},
			},
			"GET|/x/a%2Fb|/x/:id|example.org|2001:db8::1|2001:db8::1|1|a/b|d|k+l|example.org:80|7|value|bob|api",
		},
		{
			operate.Call{Path: "/pkg.Service/Do", RemoteAddr: "10.0.0.1", User: "alice", Header: http.Header{"X-Forwarded-For": {"192.0.2.9"}, "Host": {"h"}}},
			"|/pkg.Service/Do|/pkg.Service/Do|h|192.0.2.9|10.0.0.1|||||h|-1|value|alice|api",
		},
		{operate.Call{Method: "GET", Path: "/x/7", Route: "/x/{id}"}, "GET|/x/7|/x/{id}||invalid IP|invalid IP||7||||-1|value||api"},
	} {
		x, err := operate.New(limiter).Explain(ctx, test.info)
		if err != nil {
			t.Fatal(err)
		}
		if r := ruleOf(t, x, "api"); r.Subject != test.want || len(r.Errors) > 0 {
			t.Errorf("%+v:\ngot  %s %v\nwant %s", test.info, r.Subject, r.Errors, test.want)
		}
	}
}

// newRouted returns a limiter whose guards were called for some routes, and two of them: of a named and
// of an unnamed rule.
func newRouted(t *testing.T) (limiter *core.Limiter, reply, unnamed *core.Guard) {
	t.Helper()
	limiter = newLimiter(t, core.Options{Identify: whoSays})
	reply = attach(t, limiter, core.Rule{Name: "reply", Limit: core.PerHour(1)})
	unnamed = attach(t, limiter, core.Rule{Limit: core.PerHour(1), NeedLogin: true})
	attach(t, limiter, core.Rule{Name: "uncalled", Limit: core.PerHour(2)})
	group := attach(t, limiter, core.Rule{Name: "group", Limit: core.PerHour(1_000_000)})
	front := attach(t, limiter, core.Rule{Name: "front", Limit: core.PerHour(2)})
	for range 2 {
		reply.Check(newView("POST", "/reply"))
		unnamed.Check(newView("GET", "/posts/:id").as("alice"))
		front.Check(newView("GET", "").from("192.0.2.9"))
	}
	for i := range 20 {
		group.Check(newView("GET", fmt.Sprint("/", i)))
	}
	return limiter, reply, unnamed
}

// A Guard that was called for other routes only does not refuse the call.
func TestExplainRoutes(t *testing.T) {
	limiter, _, _ := newRouted(t)
	for _, test := range []struct {
		info operate.Call
		rule string // that would refuse
		want string // the rules that are not elsewhere
	}{
		{operate.Call{Method: "POST", Path: "/reply"}, "reply", "reply group front"},
		{operate.Call{Method: "POST", Path: "/reply", RemoteAddr: "192.0.2.9"}, "front", "reply group front"},
		{operate.Call{Method: "GET", Path: "/reply", Route: "/reply"}, "", "group front"},
		{operate.Call{Method: "GET", Path: "/posts/7", Route: "/posts/:id", User: "alice"}, "GET /posts/:id", "GET /posts/:id group front"},
		{operate.Call{Method: "HEAD", Path: "/posts/7", User: "alice"}, "GET /posts/:id", "GET /posts/:id group front"},
		{operate.Call{Method: "GET", Path: "/posts/7", Route: "/posts/:id", User: "bob"}, "", "GET /posts/:id group front"},
		{operate.Call{Method: "GET", Path: "/posts", User: "alice"}, "", "group front"},
		{operate.Call{Method: "GET", Path: "/7", User: "alice"}, "", "group front"},
	} {
		test.info.RemoteAddr = cmp.Or(test.info.RemoteAddr, from1)
		x := explain(t, limiter, test.info)
		var here []string
		for _, r := range x.Rules {
			if !r.Elsewhere {
				here = append(here, r.Name)
			}
			if r.Refuses != (r.Name == test.rule) {
				t.Errorf("%+v: %+v", test.info, r)
			}
		}
		if got := strings.Join(here, " "); got != test.want || x.Rule != test.rule {
			t.Errorf("%+v: refused by %q, here are %s, want %+v\n%v", test.info, x.Rule, got, test, x)
		}
	}
	if text := explain(t, limiter, operate.Call{Method: "POST", Path: "/reply"}).String(); !strings.Contains(text, ", but not for this route: it counts each route by itself, and was never called for this one\n") {
		t.Errorf("the text does not say why a rule is not known:\n%s", text)
	}
}

// The first 16 routes of a Guard are noted, and one of so many calls for further ones. Explaining a call
// notes none.
func TestExplainNotedRoutes(t *testing.T) {
	limiter, reply, unnamed := newRouted(t)
	unnamed.Check(newView("GET", "/posts/{slug}").as("alice")) // now there are two for a path
	x := explain(t, limiter, operate.Call{Method: "GET", Path: "/posts/7", User: "alice"})
	if r := ruleOf(t, x, "(no route)"); r.Elsewhere || len(r.Limits) > 0 || !strings.Contains(r.Because, "the call's route is not known") {
		t.Errorf("%+v", r)
	}
	if r := ruleOf(t, x, "group"); len(r.Routes) != 16 || !slices.IsSorted(r.Routes) {
		t.Errorf("%+v", r)
	}
	late := attach(t, limiter, core.Rule{Name: "late", Limit: core.PerHour(1)})
	for range 1_000 {
		late.Check(newView("GET", "/early"))
	}
	for range 2 * 127 {
		late.Check(newView("GET", "/late"))
	}
	if r := ruleOf(t, explain(t, limiter, operate.Call{Method: "GET", Path: "/late"}), "late"); r.Elsewhere || len(r.Routes) != 2 {
		t.Errorf("%+v", r)
	}
	if x := explain(t, limiter, operate.Call{Method: "POST", Path: "/x", Route: "/x", RemoteAddr: "192.0.2.2"}); x.Reason != core.Allowed || !strings.HasPrefix(x.String(), "POST /x from 192.0.2.2: allowed\n") {
		t.Errorf("%v", x)
	}
	reply.Check(newView("POST", "/reply").from("192.0.2.3"))
	if x := explain(t, limiter, operate.Call{Method: "GET", Path: "/x", RemoteAddr: "192.0.2.3"}); x.Reason != core.Allowed || !strings.Contains(x.String(), `allowed, unless "reply" is attached to this route`) {
		t.Errorf("%v", x)
	}
	before := len(limiter.Stats().Decisions)
	explain(t, limiter, operate.Call{Method: "GET", Path: "/new", Route: "/new"})
	if x := inspect(t, limiter, "user:alice"); len(limiter.Stats().Decisions) != before || slices.ContainsFunc(x.Rules, func(r operate.ExplainedRule) bool { return r.Name == "GET /new" }) {
		t.Errorf("explaining a call made its route known: %v", x)
	}
}

// The first Guard that refuses a call decides, even if the refusal by another one would precede it
// within a Guard. Rules elsewhere say nothing about the call. Rules with patterns are not elsewhere.
func TestExplainSeveralGuards(t *testing.T) {
	limiter := newLimiter(t, core.Options{})
	hourly := core.PerHour(1)
	guards := []*core.Guard{
		attach(t, limiter, core.Rule{Name: "first", Limit: hourly}), attach(t, limiter, core.Rule{Name: "costly", Limit: hourly, Cost: cost(5)}),
	}
	soft := attach(t, limiter, core.Rule{Name: "soft", Limit: hourly, Mode: core.Soft})
	patterns := attach(t, limiter, core.Rule{Name: "patterns", Limit: core.PerHour(9), Paths: []string{"/p/**"}})
	for _, guard := range guards {
		guard.Check(newView("GET", "/p/a"))
	}
	soft.Check(newView("GET", "/soft"))
	patterns.Check(newView("GET", "/p/b"))
	x := explain(t, limiter, operate.Call{Method: "GET", Path: "/p/a", RemoteAddr: from1})
	if x.Reason != core.LimitExceeded || x.Rule != "first" || ruleOf(t, x, "patterns").Elsewhere {
		t.Errorf("%v", x)
	}
	x = explain(t, limiter, operate.Call{Method: "GET", Path: "/p/c", RemoteAddr: from1})
	if x.Reason != core.Allowed || x.Rule != "" || ruleOf(t, x, "soft").Reason != core.SoftExceeded {
		t.Errorf("%v", x)
	}
}

// The rules of a Check follow those of Guards. If a handler passes subjects, Explain does not know
// them.
func TestExplainChecks(t *testing.T) {
	limiter := newLimiter(t, core.Options{})
	hourly := core.PerHour(1)
	own, passed := limiter.MustCheck(core.Rule{Name: "own", Limit: hourly}), limiter.MustCheck(core.Rule{Name: "passed", Limit: hourly})
	guard := attach(t, limiter, core.Rule{Name: "guard", Limit: core.PerHour(2)})
	v := newView("POST", "/login")
	for _, want := range []string{"own", "guard"} {
		guard.Check(v)
		own.Allow(v, "")
		passed.Allow(v, "account:alice")
		x, err := operate.New(limiter).ExplainView(v)
		if err != nil || x.Rule != want {
			t.Errorf("%v, %v", err, x)
		}
		if r := ruleOf(t, x, "own"); !r.InHandler || r.Reason != core.LimitExceeded {
			t.Errorf("%+v", r)
		}
		if r := ruleOf(t, x, "passed"); !r.InHandler || !r.Applies || len(r.Limits) > 0 || r.Reason != "" || !strings.Contains(r.Because, "use Inspect") {
			t.Errorf("%+v", r)
		}
	}
	if r := ruleOf(t, inspect(t, limiter, "account:alice"), "passed"); r.Reason != core.LimitExceeded || r.Limits[0].Used != 1 {
		t.Errorf("%+v", r)
	}
	runtime.KeepAlive(own)
	runtime.KeepAlive(passed)
}

// looseFakeView is a call in a framework whose router ignores case.
type looseFakeView struct{ *fakeView }

func (looseFakeView) Loose() (anyCase, anySlash bool) { return true, false }

// A call is read as the framework of the guard reads it, once the guard was called.
func TestExplainLooseRouters(t *testing.T) {
	limiter := newLimiter(t, core.Options{})
	guard := attach(t, limiter, core.Rule{Name: "api", Limit: core.PerHour(1), Paths: []string{"/API/*"}})
	guard.Check(looseFakeView{newView("GET", "/api/x")})
	for path, applies := range map[string]bool{"/Api/x": true, "/other": false} {
		r := ruleOf(t, explain(t, limiter, operate.Call{Method: "GET", Path: path, RemoteAddr: from1}), "api")
		if r.Applies != applies || (r.Reason == core.LimitExceeded) != applies {
			t.Errorf("%s: %+v", path, r)
		}
	}
}

// The rules of a set are shown in their present version, with the place where the Guard was made.
func TestExplainRuleSet(t *testing.T) {
	limiter := newLimiter(t, core.Options{})
	set, err := limiter.RuleSet(core.Rule{Name: "api", Limit: core.PerHour(1)})
	if err != nil {
		t.Fatal(err)
	}
	guard := set.MustGuard("api")
	for i, version := range []string{"", "7", "8"} {
		if err := set.Replace(version, core.Rule{Name: "api", Limit: core.PerHour(1 + i)}); err != nil {
			t.Fatal(err)
		}
		guard.Check(newView("GET", "/"))
		x := inspect(t, limiter, "ip:192.0.2.1")
		r := ruleOf(t, x, "api")
		if r.Version != version || limitsText(r) != fmt.Sprintf("%d/h rule %d+0", 1+i, 1+i) || !strings.Contains(r.Place, "operate/explain_test.go:") {
			t.Errorf("%+v", r)
		}
		if text := x.String(); strings.Contains(text, `in version "`+version+`"`) != (version != "") {
			t.Errorf("%s", text)
		}
	}
	runtime.KeepAlive(guard)
}

// Skip, costs, plans, and limits that are computed.
func TestExplainLimits(t *testing.T) {
	onBothEngines(t, func(t *testing.T, options core.Options) {
		limiter := newLimiter(t, options)
		daily := core.PerDay(5).Fixed()
		query := func(r core.Request) (string, error) { return r.Query("plan"), nil }
		plans := map[string]core.Limit{"pro": core.PerDay(9).Fixed(), "vip": core.Unlimited}
		guard := attach(t, limiter,
			core.Rule{Name: "plan", Limit: daily, Also: []core.Limit{core.InFlight(2)}, Plan: query, Plans: plans},
			core.Rule{Name: "computed", Limit: daily, LimitFor: func(r core.Request) (core.Limit, error) { return core.ParseLimit(r.Query("limit")) }},
			core.Rule{Name: "cost", Limit: daily, Also: []core.Limit{core.InFlight(2)}, Cost: func(r core.Request) int { return int(r.Size()) }},
			core.Rule{Name: "size", Limit: daily, Also: []core.Limit{core.InFlight(2)}, Cost: core.CostBySize(10)},
			core.Rule{Name: "skip", Limit: daily, Skip: func(r core.Request) bool { return r.Query("skip") != "" }},
		)
		v := newView("GET", "/").asking("limit=7/24h+fixed")
		v.size = 1
		guard.Check(v)
		for _, test := range []struct {
			query, size string
			want        map[string]string
			reason      core.Reason
		}{
			{"plan=&limit=7/24h+fixed", "1", map[string]string{
				"plan": "5/24h fixed rule 1+4, 2 at once also 1+1", "computed": "7/24h fixed computed 1+6", "skip": "5/24h fixed rule 1+4",
			}, core.Allowed},
			{"plan=pro&limit=unlimited&skip=1", "4", map[string]string{
				"plan": "9/24h fixed plan pro 1+8, 2 at once also 1+1", "computed": "unlimited computed", "cost": "5/24h fixed rule 1+4, 2 at once also 1+1", "skip": "",
			}, core.Allowed},
			{"plan=vip&limit=5/24h+fixed", "77", map[string]string{"plan": "unlimited plan vip", "computed": "5/24h fixed rule 1+4", "size": "5/24h fixed rule 1+4, 2 at once also 1+1"}, core.CostTooHigh},
		} {
			x := explain(t, limiter, operate.Call{
				Method: "GET", Path: "/?" + test.query, RemoteAddr: from1, Header: http.Header{"Content-Length": {test.size}},
			})
			for name, want := range test.want {
				if r := ruleOf(t, x, name); limitsText(r) != want || r.Applies != (want != "") {
					t.Errorf("%s of %s: %s, want %s; %+v", name, test.query, limitsText(r), want, r)
				}
			}
			if r := ruleOf(t, x, "cost"); x.Reason != test.reason || r.Refuses != (test.reason == core.CostTooHigh) || fmt.Sprint(r.Cost) != test.size || r.RetryAfter != 0 {
				t.Errorf("%s: %v", test.query, x)
			} else if r.Refuses && r.Limits[0].RetryAfter != 0 {
				t.Errorf("%s: no wait helps: %v", test.query, x)
			}
		}
		// A body of unknown length costs as much as fits.
		x := explain(t, limiter, operate.Call{Method: "GET", Path: "/?limit=7/24h+fixed", RemoteAddr: from1})
		if r := ruleOf(t, x, "size"); r.Cost != 5 || r.Reason != core.LimitExceeded || !r.Refuses {
			t.Errorf("%v", x)
		}
	})
}
