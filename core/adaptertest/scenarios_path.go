package adaptertest

import (
	"strings"
	"sync/atomic"
	"testing"

	"github.com/accesslimit/accesslimit/core"
)

// pathScenarios are about the calls to which a rule of the whole router applies.
var pathScenarios = []scenario{
	{name: "path patterns and exceptions", run: pathsAndExceptions},
	{name: "an exception with a letter that is sent escaped", run: escapedException, httpOnly: true},
	{name: "an unknown path is counted too", run: unknownPaths, httpOnly: true},
	{name: "methods", run: methods, httpOnly: true},
	{name: "no spelling of a path gets around a rule", run: spellings, httpOnly: true},
	{name: "no spelling of a path becomes an exception", run: exceptionSpellings, httpOnly: true},
	{name: "no spelling of a method gets around a rule", run: methodSpellings, httpOnly: true},
	{name: "no spelling of a path gets a counter of its own", run: routeSpellings, httpOnly: true},
	{name: "no spelling of a path gets a counter of its own under a rule of the whole router", run: routeSpellingsInUse, httpOnly: true},
	{name: "an escaped slash does not get around a rule", run: escapedSlash, httpOnly: true},
	{name: "every target is counted under a rule of the whole router", run: everyTarget, httpOnly: true},
	{name: "a made-up method gets no counter of its own", run: madeUpMethods, httpOnly: true},
}

func pathsAndExceptions(t *testing.T, s *site) {
	rule := core.Rule{Seconds: 600, MaxCount: 2, Paths: []string{"/limit/**"}, Except: []string{"/limit/free", "/limit/free/**"}}
	s.serve(t, App{Limiter: s.limiter(t), Use: limit(rule), Routes: []Route{
		{Path: "/limit/list"}, {Path: "/limit/show"}, {Path: "/limit/free"}, {Path: "/shop/list"},
	}})
	s.want(t, 200, "/limit/list")
	s.want(t, 200, "/limit/show")
	s.want(t, 429, "/limit/list")
	reply := s.want(t, 200, "/limit/free")
	wantHeader(t, reply, "Ratelimit", "")
	s.want(t, 200, "/shop/list")
}

// escapedException excepts a path that has to be escaped to be sent. The exception holds if the
// framework decodes paths before it routes them. Otherwise the framework knows no such path.
func escapedException(t *testing.T, s *site) {
	rule := core.Rule{Name: "most", Seconds: 600, MaxCount: 1, Except: []string{"/café"}}
	s.serve(t, App{Limiter: s.limiter(t), Use: limit(rule), Routes: []Route{{Path: "/café"}}})
	const sent = "/caf%C3%A9"
	if s.doRaw(t, "GET", sent).Status == 404 {
		s.want(t, 429, sent)
		return
	}
	s.want(t, 200, sent)
	s.want(t, 200, sent)
}

func unknownPaths(t *testing.T, s *site) {
	s.serve(t, App{Limiter: s.limiter(t), Use: limit(core.Rule{Name: "api", Seconds: 600, MaxCount: 2}), Routes: []Route{{Path: "/shop/list"}}})
	s.want(t, 404, "/no/such")
	s.want(t, 404, "/nor/this")
	s.want(t, 429, "/no/such")
	s.want(t, 429, "/shop/list")
}

func methods(t *testing.T, s *site) {
	rule := core.Rule{Name: "writes", Seconds: 600, MaxCount: 1, Methods: []string{"POST"}}
	s.serve(t, App{Limiter: s.limiter(t), Use: limit(rule), Routes: []Route{
		{Path: "/shop/list"}, {Method: "POST", Path: "/shop/list"},
	}})
	for _, step := range []struct {
		method string
		status int
	}{{"GET", 200}, {"POST", 200}, {"POST", 429}, {"GET", 200}} {
		if reply := s.do(t, step.method, "/shop/list"); reply.Status != step.status {
			t.Fatalf("%s: status %d, want %d", step.method, reply.Status, step.status)
		}
	}
}

// usedUp serves handlers behind rules that allow one call, uses up each counter with a plain call,
// and then tries each trick. A trick that runs a handler has got around a rule.
func (s *site) usedUp(t *testing.T, app App, plain ...string) {
	t.Helper()
	var ran atomic.Int32
	for i, route := range app.Routes {
		if !everybodys(route) {
			app.Routes[i].Handle = func(h Handling) { ran.Add(1); h.Text("ok") }
		}
	}
	app.Limiter = s.limiter(t)
	s.serve(t, app)
	for _, path := range plain {
		s.want(t, 200, path)
	}
	for _, try := range tries() {
		if reply := s.doRaw(t, try.method, try.target, try.lines...); int(ran.Load()) != len(plain) {
			t.Fatalf("%s %.200q %q ran a handler around the rule: %+v", try.method, try.target, try.lines, reply)
		}
	}
	for _, path := range plain {
		s.want(t, 429, path)
	}
}

// ruledRoutes returns the routes for the tricks. Those of /free and /open have no limit.
func ruledRoutes(limits ...[]core.Rule) []Route {
	return []Route{
		{Path: "/limit/admin", limits: limits}, {Path: "/files/{name}", limits: limits}, {Path: "/deep/{rest...}", limits: limits},
		{Path: "/free/{name}"}, {Path: "/open/{rest...}"},
	}
}

func everybodys(route Route) bool {
	return strings.HasPrefix(route.Path, "/free/") || strings.HasPrefix(route.Path, "/open/")
}

func spellings(t *testing.T, s *site) {
	rule := core.Rule{Name: "guarded", Seconds: 600, MaxCount: 1, Paths: []string{"/limit/**", "/files/*", "/deep/**"}}
	s.usedUp(t, App{Use: limit(rule), Routes: ruledRoutes()}, "/limit/admin")
	s.want(t, 200, "/free/x")
	s.want(t, 200, "/open/x/y")
}

func exceptionSpellings(t *testing.T, s *site) {
	rule := core.Rule{Name: "most", Seconds: 600, MaxCount: 1, Except: []string{"/free/**", "/open/**"}}
	s.usedUp(t, App{Use: limit(rule), Routes: ruledRoutes()}, "/limit/admin")
	s.want(t, 200, "/free/x")
	s.want(t, 200, "/open/x/y")
}

// methodSpellings checks that no other spelling of a method gets around a rule for the method.
func methodSpellings(t *testing.T, s *site) {
	rule := core.Rule{Name: "reads", Seconds: 600, MaxCount: 1, Methods: []string{"GET"}}
	s.usedUp(t, App{Use: limit(rule), Routes: ruledRoutes()}, "/limit/admin")
}

// routeSpellings checks that an unnamed rule counts a route by its pattern, however the path is
// spelled.
func routeSpellings(t *testing.T, s *site) {
	rule := core.Rule{Seconds: 600, MaxCount: 1}
	s.usedUp(t, App{Routes: ruledRoutes([]core.Rule{rule})}, "/limit/admin", "/files/plain", "/deep/plain/x")
}

// routeSpellingsInUse does the same for a rule of the whole router, if the framework knows the
// route there.
func routeSpellingsInUse(t *testing.T, s *site) {
	plain := []string{"/limit/admin", "/files/plain", "/deep/plain/x"}
	if !s.adapter.can(RouteInUse) { // all routes share one counter
		plain = plain[:1]
	}
	s.usedUp(t, App{Use: limit(core.Rule{Seconds: 600, MaxCount: 1}), Routes: ruledRoutes()}, plain...)
}

// everyTarget tries a rule of the whole router in front of a route for every path, which also gets
// targets that are no paths in some frameworks, such as *.
func everyTarget(t *testing.T, s *site) {
	rule := core.Rule{Name: "all", Seconds: 600, MaxCount: 1}
	s.usedUp(t, App{Use: limit(rule), Routes: []Route{{Method: "*", Path: "/{rest...}"}}}, "/limit/admin")
}

// escapedSlash tries paths with an escaped slash. A router may see one segment in /free%2Fx, which
// has two when it is decoded.
func escapedSlash(t *testing.T, s *site) {
	for _, rule := range []core.Rule{
		{Name: "paths", Seconds: 600, MaxCount: 1, Paths: []string{"/*/admin"}},
		{Name: "except", Seconds: 600, MaxCount: 1, Except: []string{"/free/**"}},
	} {
		var ran atomic.Int32
		s.serve(t, App{Limiter: s.limiter(t), Use: limit(rule), Routes: []Route{{
			Path: "/{tenant}/admin", Handle: func(h Handling) { ran.Add(1); h.Text("ok") },
		}}})
		s.want(t, 200, "/acme/admin")
		for _, target := range []string{"/free%2Fx/admin", "/free%2fx/admin", "/free%2F../admin", "/a%2Fb/admin"} {
			if reply := s.doRaw(t, "GET", target); ran.Load() != 1 {
				t.Fatalf("GET %s ran the handler around the rule: %+v", target, reply)
			}
		}
	}
}

func madeUpMethods(t *testing.T, s *site) {
	s.serve(t, App{Limiter: s.limiter(t), Routes: []Route{
		{Method: "*", Path: "/shop/list", limits: limit(core.Rule{Seconds: 600, MaxCount: 1})},
	}})
	var served int
	for _, method := range []string{"ONE", "TWO", "THREE", "FOUR", "FIVE"} {
		if s.doRaw(t, method, "/shop/list").Status == 200 {
			served++
		}
	}
	if served > 1 {
		t.Fatalf("%d made-up methods were served, want at most 1", served)
	}
}
