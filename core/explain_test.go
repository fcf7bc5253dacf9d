package core_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/accesslimit/accesslimit/core"
)

// explain explains a call that the store answers for.
func explain(t *testing.T, limiter *core.Limiter, info core.CallInfo) core.Explanation {
	t.Helper()
	x, err := limiter.Explain(background, info)
	if err != nil {
		t.Fatal(err)
	}
	return x
}

// inspect inspects a subject that the store answers for.
func inspect(t *testing.T, limiter *core.Limiter, subject string) core.Explanation {
	t.Helper()
	x, err := limiter.Inspect(background, subject)
	if err != nil {
		t.Fatal(err)
	}
	return x
}

// attach makes a guard that the service holds, as a router would, until the test ends.
func attach(t *testing.T, limiter *core.Limiter, rules ...core.Rule) *core.Guard {
	t.Helper()
	guard := newGuard(t, limiter, rules...)
	t.Cleanup(func() { runtime.KeepAlive(guard) })
	return guard
}

// ruleOf returns what an Explanation says of a rule, which it has once.
func ruleOf(t *testing.T, x core.Explanation, name string) core.ExplainedRule {
	t.Helper()
	at := slices.IndexFunc(x.Rules, func(r core.ExplainedRule) bool { return r.Name == name })
	if at < 0 || slices.ContainsFunc(x.Rules[at+1:], func(r core.ExplainedRule) bool { return r.Name == name }) {
		t.Fatalf("%q is not there once: %v", name, x)
	}
	return x.Rules[at]
}

// limitsText returns the limits of a rule as "5/m rule 2+3": 2 are used and 3 left.
func limitsText(r core.ExplainedRule) string {
	var texts []string
	for _, l := range r.Limits {
		text := fmt.Sprintf("%v %s", l.Limit, l.Source)
		if l.Limit == (core.Limit{}) {
			text = "any " + l.Source
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
	onBothEngines(t, func(t *testing.T, options core.Options, source core.Source) {
		heard, notes := 0, 0
		options.OnDecision = func(context.Context, core.Event) { heard++ }
		limiter := newLimiter(t, options)
		guard := attach(t, limiter, core.Rule{
			Name: "api", Limit: core.PerHour(2).Log(), Also: []core.Limit{core.PerDay(3)}, Ban: core.Ban{After: 2, For: 3 * time.Hour},
			Note: func(core.Request) string { notes++; return "" },
		}, core.Rule{Name: "slot", Limit: core.InFlight(2)})
		counter := limiter.MustCounter("api", core.PerHour(2).Log())
		call := core.CallInfo{Method: "GET", Path: "/", RemoteAddr: from1}
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
			if source == core.FromRedis && after.Trips != before.Trips+5 { // and as many for the ban, which are not counted
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
func TestExplanationInWords(t *testing.T) {
	limiter, now := newLimiter(t, core.Options{Identify: whoSays}), time.Date(2026, 11, 22, 22, 0, 0, 0, time.UTC).UnixMicro()
	core.UseClock(limiter, func() int64 { return now })
	guard := attach(t, limiter,
		core.Rule{Name: "api", Limit: core.PerMinute(2).Fixed(), Also: []core.Limit{core.PerCalendarDay(9, "UTC")}, Paths: []string{"/api/**"}},
		core.Rule{Name: "post", Limit: core.PerSecond(1).Bucket(5), Methods: []string{"POST", "PUT"}},
	)
	for range 2 {
		guard.Check(newView("GET", "/api/x"))
	}
	x := explain(t, limiter, core.CallInfo{Method: "GET", Path: "/api/x?page=2", RemoteAddr: from1, User: "al\nice"})
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

// A call is explained by what CallInfo says of it.
func TestCallInfo(t *testing.T) {
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
		info core.CallInfo
		want string
	}{
		{core.CallInfo{}, "||||invalid IP|invalid IP||||||-1|value||api"},
		{
			core.CallInfo{
				Method: "GET", Path: "/x/a%2Fb?a=1&a=2", Route: "/x/:id", Host: "Example.org:80", RemoteAddr: "[2001:db8::1]:80",
				Header: http.Header{"cookie": {"c=d"}, "X-API-Key": {"k", "l"}, "Content-Length": {"7"}, "Authorization": {"Bearer bob"}},
			},
			"GET|/x/a%2Fb|/x/:id|example.org|2001:db8::1|2001:db8::1|1|a/b|d|k+l|example.org:80|7|value|bob|api",
		},
		{
			core.CallInfo{Path: "/pkg.Service/Do", RemoteAddr: "10.0.0.1", User: "alice", Header: http.Header{"X-Forwarded-For": {"192.0.2.9"}, "Host": {"h"}}},
			"|/pkg.Service/Do|/pkg.Service/Do|h|192.0.2.9|10.0.0.1|||||h|-1|value|alice|api",
		},
		{core.CallInfo{Method: "GET", Path: "/x/7", Route: "/x/{id}"}, "GET|/x/7|/x/{id}||invalid IP|invalid IP||7||||-1|value||api"},
	} {
		x, err := limiter.Explain(ctx, test.info)
		if err != nil {
			t.Fatal(err)
		}
		if r := ruleOf(t, x, "api"); r.Subject != test.want || len(r.Errors) > 0 {
			t.Errorf("%+v:\ngot  %s %v\nwant %s", test.info, r.Subject, r.Errors, test.want)
		}
	}
}
