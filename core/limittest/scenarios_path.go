package limittest

import (
	"sync/atomic"
	"testing"

	"github.com/accesslimit/accesslimit/core"
)

// pathScenarios are about which calls a rule of the whole router is for.
var pathScenarios = []scenario{
	{name: "path patterns and exceptions", run: pathsAndExceptions},
	{name: "an unknown path is counted too", run: unknownPaths, httpOnly: true},
	{name: "methods", run: methods, httpOnly: true},
	{name: "no spelling of a path walks around a rule", run: spellings, httpOnly: true},
	{name: "no spelling of a path becomes an exception", run: exceptionSpellings, httpOnly: true},
	{name: "an escaped slash is no way around a rule", run: escapedSlash, httpOnly: true},
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

// tricks are spellings of paths, some of which some routers serve.
var tricks = []string{
	"/limit/admin", "/limit/adm%69n", "/%6cimit/admin", "/limit%2fadmin", "//limit/admin", "/limit//admin", "/./limit/admin",
	"/x/../limit/admin", "/limit/%2e/admin", "/x/%2e%2e/limit/admin", "/limit/admin/", "/limit/admin//", "/LIMIT/Admin",
	"/limit/admin;x=y", "/limit/admin.", "/limit/admin%20", "/limit/admin%00", "/limit/admin#f", "/limit/admin?x=/free",
	"http://service.test/limit/admin", "/limit/%61dmin/", "/Limit/ADMIN/", "/limit/admin/../admin",
	"/files/../limit/admin", "/files/%2e%2e/limit/admin", "/files/..%2flimit/admin", "/FILES/%2e%2e/limit/admin",
	"/files/a%2fb", "/files/a", "/Files/a/", "/files/..", "/files/%2e%2e", "/free/../files/x", "/free/%2e%2e/files/x",
	"/free/..%2ffiles", "/files/%2e%2e%2ffree", "/files/..%2ffree%2fx",
}

// usedUp serves handlers behind a rule of the whole router, uses the rule up with one plain call, and then tries every trick.
// No handler may run any more: what runs one has walked around the rule.
func usedUp(t *testing.T, s *site, rule core.Rule) {
	var ran atomic.Int32
	count := func(h Handling) { ran.Add(1); h.Text("ok") }
	s.serve(t, App{Limiter: s.limiter(t), Use: limit(rule), Routes: []Route{
		{Path: "/limit/admin", Handle: count}, {Path: "/files/{name}", Handle: count}, {Path: "/free/{name}"},
	}})
	s.want(t, 200, "/limit/admin")
	for _, target := range tricks {
		if reply := s.doRaw(t, "GET", target); ran.Load() != 1 {
			t.Fatalf("GET %s ran a handler around the rule: %+v", target, reply)
		}
	}
	s.want(t, 200, "/free/x")
}

func spellings(t *testing.T, s *site) {
	usedUp(t, s, core.Rule{Name: "guarded", Seconds: 600, MaxCount: 1, Paths: []string{"/limit/**", "/files/*"}})
}

func exceptionSpellings(t *testing.T, s *site) {
	usedUp(t, s, core.Rule{Name: "most", Seconds: 600, MaxCount: 1, Except: []string{"/free/**"}})
}

// escapedSlash minds that a router may take /free%2Fx for one segment, which decoded are two.
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
		{Method: "*", Path: "/shop/list", Limits: limit(core.Rule{Seconds: 600, MaxCount: 1})},
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
