package operate_test

import (
	"cmp"
	"fmt"
	"net/netip"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/core/operate"
)

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
		unnamed.Check(newView("GET", "/posts/:id").As("alice"))
		front.Check(newView("GET", "").From("192.0.2.9"))
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
	unnamed.Check(newView("GET", "/posts/{slug}").As("alice")) // now there are two for a path
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
	reply.Check(newView("POST", "/reply").From("192.0.2.3"))
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

// A call that a proxy asks about is read for whichever router is behind the proxy.
func TestExplainForwardAuth(t *testing.T) {
	limiter := newLimiter(t, core.Options{ClientIP: core.ClientIP{TrustedProxies: []string{"10.0.0.1"}}})
	rule := core.Rule{Name: "api", Limit: core.PerHour(1), Key: core.Global, Paths: []string{"/api/*"}, Except: []string{"/api/free"}}
	check := limiter.MustCheck(rule)
	decide, err := check.ForwardAuth()
	if err != nil {
		t.Fatal(err)
	}
	for i, path := range []string{"/api/a", "/API/a/", "/api/FREE", "/api/free", "/other"} {
		request := newView("GET", "/auth")
		request.Peer = netip.MustParseAddr("10.0.0.1")
		for name, value := range map[string]string{"Method": "GET", "Uri": path, "Host": "service.test", "For": "203.0.113.7"} {
			request.Request.Set("X-Forwarded-"+name, value)
		}
		refused := decide(request).Refusal != nil
		r := ruleOf(t, explain(t, limiter, operate.Call{Method: "GET", Path: path, RemoteAddr: from1}), "api")
		if applies := i < 3; r.Applies != applies || (r.Reason == core.LimitExceeded) != applies || refused != (applies && i > 0) {
			t.Errorf("%s: refused %v, %+v", path, refused, r)
		}
	}
	runtime.KeepAlive(check)
}
