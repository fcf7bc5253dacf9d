package core_test

import (
	"fmt"
	"testing"

	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/internal/logtest"
)

// looseView is a call of a framework that serves other spellings of a path than the registered one.
type looseView struct {
	*fakeView
	anyCase, anySlash bool
}

func (v looseView) Loose() (anyCase, anySlash bool) { return v.anyCase, v.anySlash }

func at(route, path string) *fakeView {
	v := newView("GET", route)
	v.path = path
	return v
}

// countedAs returns the name under which an unnamed rule counts a call.
func countedAs(t *testing.T, method, route string) string {
	t.Helper()
	var heard decisions
	guard := newGuard(t, newLimiter(t, core.Options{OnDecision: heard.note}), core.Rule{Seconds: 1})
	guard.Check(newView(method, route))
	return heard.last(t, 1).Rule
}

func TestNamesOfUnnamedRules(t *testing.T) {
	for _, test := range []struct{ method, route, name string }{
		{"GET", "/users/:id", "GET /users/:id"},
		{"HEAD", "/users/:id", "GET /users/:id"},
		{"POST", "/users/:id", "POST /users/:id"},
		{"PATCH", "/", "PATCH /"},
		{"", "/grpc.health.v1.Health/Check", "/grpc.health.v1.Health/Check"},
		{"BREW", "/pot", "OTHER /pot"},
		{"get", "/pot", "OTHER /pot"},
		{"GET", "", "(no route)"},
		{"BREW", "", "(no route)"},
		{"", "", "(no route)"},
	} {
		if name := countedAs(t, test.method, test.route); name != test.name {
			t.Errorf("%q %q is %q, want %q", test.method, test.route, name, test.name)
		}
	}
}

func TestNamesOfRulesWithPaths(t *testing.T) {
	for name, rule := range map[string]core.Rule{
		"/a,/b/**":                        {Paths: []string{"/b/**", "/a"}},
		"GET,POST /a":                     {Paths: []string{"/a"}, Methods: []string{"POST", "GET"}},
		"GET /a/** except /a/free,/a/new": {Paths: []string{"/a/**"}, Methods: []string{"GET"}, Except: []string{"/a/new", "/a/free"}},
		"own":                             {Paths: []string{"/a"}, Name: "own"},
	} {
		var heard decisions
		rule.Seconds = 1
		guard := newGuard(t, newLimiter(t, core.Options{OnDecision: heard.note}), rule)
		wantStatus(t, guard, newView("GET", "/a"), 200)
		if d := heard.last(t, 1); d.Rule != name {
			t.Errorf("%q, want %q", d.Rule, name)
		}
	}
}

// mostRoutes is the number of routes that an unnamed rule counts separately.
const mostRoutes = 2000

// Callers of a gRPC proxy choose the method's name. The number of counters is bounded all the same.
func TestMadeUpRoutesStayBounded(t *testing.T) {
	var heard decisions
	guard := newGuard(t, newLimiter(t, core.Options{OnDecision: heard.note}), core.Rule{Seconds: 3600, MaxCount: 100_000})
	wantStatus(t, guard, newView("", "/real/Method"), 200)
	for i := range mostRoutes + 500 {
		wantStatus(t, guard, newView("", fmt.Sprint("/made/Up", i)), 200)
	}
	wantStatus(t, guard, newView("", "/real/Method"), 200)
	names := make(map[string]int)
	for _, d := range heard.heard {
		names[d.Rule]++
	}
	if len(names) > mostRoutes || names["(no route)"] < 500 || names["/real/Method"] != 2 {
		t.Errorf("%d names, %d calls beyond, %d of the known route", len(names), names["(no route)"], names["/real/Method"])
	}
}

func TestTwoUnnamedRulesOnOneRouteAreWarnedAbout(t *testing.T) {
	var log logtest.Log
	limiter := newLimiter(t, core.Options{Logger: log.Logger()})
	router := newGuard(t, limiter, core.Rule{Seconds: 60, MaxCount: 100})
	route := newGuard(t, limiter, core.Rule{Seconds: 60, MaxCount: 50})
	other := newGuard(t, limiter, core.Rule{Seconds: 61}, core.Rule{Name: "named", Seconds: 60})
	for range 3 {
		for _, method := range []string{"GET", "HEAD"} {
			for _, guard := range []*core.Guard{router, route, other} {
				guard.Check(newView(method, "/shared"))
			}
		}
		router.Check(newView("GET", ""))
		route.Check(newView("GET", ""))
	}
	if log.Count("level=WARN", "GET /shared") != 1 || log.Count("level=WARN") != 1 {
		t.Errorf("want one warning, with the route, got: %s", log.String())
	}
}

// Rules of one name on one guard get headers of their own.
func TestHeadersOfRulesWithOneName(t *testing.T) {
	rule := core.Rule{Name: "api", Seconds: 10}
	byHeader, global := rule, rule
	byHeader.Key, global.Key = core.ByHeader("X-Api-Key"), core.Global
	v := newView("GET", "/").with("X-Api-Key", "k")
	wantStatus(t, newGuard(t, newLimiter(t, core.Options{}), rule, byHeader, global), v, 200)
	seen := make(map[any]bool)
	for _, entry := range parseList(t, v.response["Ratelimit"]) {
		seen[entry.Value] = true
	}
	if len(seen) != 3 || !seen["api"] || !seen["api-10s"] {
		t.Errorf("the names of three limits: %v", seen)
	}
}
