package operate_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"runtime"
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
		eventually(t, "the strike is explained", func() bool { return ruleOf(t, explain(t, limiter, call), "api").Strikes == 1 })
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

func (looseFakeView) Loose() (anyCase, anySlash bool) { return true, false }

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
		v := newView("GET", "/").Asking("limit=7/24h+fixed")
		v.BodySize = 1
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
