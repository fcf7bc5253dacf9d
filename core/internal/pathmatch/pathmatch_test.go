package pathmatch_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/accesslimit/accesslimit/core/internal/pathmatch"
)

// rule is what a scope is made of.
type rule struct{ Methods, Paths, Except []string }

// call is what decides whether a rule applies.
type call struct {
	method, route, path string
	anyCase, anySlash   bool
	unsure              bool
}

func at(route, path string) call { return call{method: "GET", route: route, path: path} }

// applies reports whether a rule applies to a call. It panics if Explain says otherwise.
func applies(r rule, c call) bool {
	scope := pathmatch.NewScope(r.Methods, r.Paths, r.Except)
	want := matches(&scope, c)
	if got, because := pathmatch.Explain(&scope, c.method, c.route, c.path, c.loose()); got != want || because == "" {
		panic(fmt.Sprintf("%+v of %+v: Explain says %t because %q, want %t", c, r, got, because, want))
	}
	return want
}

func (c *call) loose() (loose pathmatch.Looseness) {
	if c.anyCase {
		loose |= pathmatch.AnyCase
	}
	if c.anySlash {
		loose |= pathmatch.AnySlash
	}
	if c.unsure {
		loose |= pathmatch.Unsure
	}
	return loose
}

func matches(scope *pathmatch.Scope, c call) bool {
	if scope.HasMethods() && !scope.MatchesMethod(c.method) {
		return false
	}
	var readings pathmatch.Readings
	readings.Read("/another", "/call", 0)
	readings.Clear()
	readings.Read(c.route, c.path, c.loose())
	return !scope.HasPatterns() || scope.MatchesPath(&readings)
}

var limit = []string{"/limit/**"}

// pathTests are patterns, and whether they apply to a call.
var pathTests = []struct {
	name        string
	patterns    []string
	route, path string
	want        bool
}{
	{"the path", limit, "", "/limit/x", true},
	{"deeper", limit, "", "/limit/x/y/z", true},
	{"another path", limit, "", "/other/limit/x", false},
	{"a longer segment", limit, "", "/limits/x", false},
	{"doublestar: ** is also nothing, so /limit itself", limit, "", "/limit", true},
	{"... and with its slash", limit, "", "/limit/", true},
	{"one star is not nothing", []string{"/limit/*"}, "", "/limit", false},
	{"one star is one segment", []string{"/limit/*"}, "", "/limit/a/b", false},
	{"both are nothing", []string{"/limit*/**/**"}, "", "/limit", true},
	{"both are nothing, the star is behind", []string{"/*/**/*"}, "", "/limit/", true},
	{"only the segments are nothing", []string{"/limit/*/**"}, "", "/limit", false},
	{"both are nothing, in braces", []string{"/{v*/**,x}"}, "", "/v", true},
	{"nothing in braces, behind nothing", []string{"/**/{x,}"}, "", "/", true},
	{"nothing in braces, behind a star", []string{"/v*{,x}"}, "", "/v", true},
	{"both in nested braces", []string{"/{a,{v*,w}/**}"}, "", "/v", true},
	{"a star behind nothing is not nothing", []string{"/limit/**/*"}, "", "/limit", false},
	{"everything", []string{"/**"}, "", "/", true},
	{"the root", []string{"/"}, "", "/", true},
	{"only the root", []string{"/"}, "", "/x", false},
	{"the second pattern", []string{"/a", "/b"}, "", "/b", true},
	{"alternatives", []string{"/api/{v1,v2}/*"}, "", "/api/v2/x", true},
	{"class", []string{"/[a-c]"}, "", "/d", false},
	{"letters beyond ASCII", []string{"/größe"}, "", "/gr%C3%B6%C3%9Fe", true},

	{"the route's pattern", []string{"/users/:id"}, "/users/:id", "/users/7", true},
	{"a star for its parameter", []string{"/users/*"}, "/users/{id}", "/x", true},
	{"one value of its parameter", []string{"/users/7"}, "/users/:id", "/users/7", true},
	{"a parameter that swallows slashes", []string{"/users/*"}, "/users/:id", "/users/a/b", true},

	{"encoded letters", limit, "", "/%6cimit/x", true},
	{"encoded slash", limit, "", "/limit%2fx", true},
	{"encoded slash, pattern in one segment", []string{"/u/*"}, "", "/u/a%2fb", true},
	{"two slashes", limit, "", "//limit/x", true},
	{"many slashes", limit, "", "///limit///x", true},
	{"dot segment", limit, "", "/./limit/x", true},
	{"dots up", limit, "", "/files/../limit/x", true},
	{"encoded dots up", limit, "", "/files/%2e%2e/limit/x", true},
	{"encoded dots and slash up", limit, "", "/files/..%2flimit/x", true},
	{"dots up, for the rule of where it starts", []string{"/files/**"}, "", "/files/%2e%2e/limit/x", true},
	{"dots above the root", limit, "", "/../../limit/x", true},
	{"parameters", []string{"/limit/x"}, "", "/limit/x;a=1", true},
	{"encoded parameters", []string{"/limit/x"}, "", "/limit%3b/x", true},
	{"parameters of dots up", limit, "", "/files/..;/limit/x", true},
	{"backslashes", limit, "", `/files/..\limit\x`, true},
	{"backslashes and parameters", limit, "", `/files/..;a\limit`, true},
	{"behind a host", limit, "", "//host/limit/x", true},
	{"behind a host and more slashes", limit, "", "///host//limit/x", true},
	{"behind a host with backslashes", limit, "", `/\host\limit\x`, true},
	{"behind an encoded slash and a host", limit, "", "/%2fhost/limit/x", true},
	{"a host alone is the root", []string{"/"}, "", "//host", true},
	{"behind a segment", limit, "", "/host/limit/x", false},
	{"behind a host and a segment", limit, "", "//host/b/limit/x", false},
	{"no slash in front", limit, "", "limit/x", true},
	{"decoded once only", limit, "", "/limit%252fx", false},
	{"not decodable", limit, "", "/limit/%zz", true},
	{"not decodable, dots up", limit, "", "/files/../limit/%zz", true},
	{"nothing", limit, "", "", false},

	{"letter case", limit, "", "/LIMIT/x", false},
	{"trailing slash", []string{"/limit"}, "", "/other/", false},
	{"gRPC", []string{"/grpc.health.v1.Health/*"}, "/grpc.health.v1.Health/Check", "/grpc.health.v1.Health/Check", true},
}

// A rule applies if any reading of the call matches, or one of them would be a way around the
// limit.
func TestPaths(t *testing.T) {
	for _, test := range pathTests {
		t.Run(test.name, func(t *testing.T) {
			if got := applies(rule{Paths: test.patterns}, at(test.route, test.path)); got != test.want {
				t.Errorf("%q applies to %q at %q: %v", test.patterns, test.path, test.route, got)
			}
		})
	}
}

// An exception holds only if every reading of the call matches, so that no spelling is a way around
// the rule.
func TestExcept(t *testing.T) {
	free := rule{Paths: []string{"/limit/**"}, Except: []string{"/limit/free/**"}}
	health := rule{Except: []string{"/healthz"}}
	for _, test := range []struct {
		name        string
		rule        rule
		route, path string
		limited     bool
	}{
		{"limited", free, "/limit/:x", "/limit/x", true},
		{"excepted", free, "/limit/free/*", "/limit/free/x", false},
		{"excepted, route unknown", free, "", "/limit/free/x", false},
		{"excepted, itself", free, "", "/limit/free", false},
		{"neither", free, "", "/other", false},
		{"the route is another", free, "/limit/:x/:y", "/limit/free/x", true},
		{"dots out", free, "", "/limit/free/../x", true},
		{"encoded dots out", free, "", "/limit/free/%2e%2e/x", true},
		{"encoded slash and dots out", free, "", "/limit/free/..%2fx", true},
		{"dots in", free, "", "/limit/x/../free/x", true},
		{"encoded word", free, "", "/limit/fre%65/x", true},
		{"two slashes", free, "", "//limit/free/x", true},
		{"another case", free, "", "/limit/FREE/x", true},

		{"parameters of dots out", free, "", "/limit/free/..;/x", true},
		{"encoded parameters of dots out", free, "", "/limit/free/%2e%2e%3bv=1/x", true},
		{"behind a host", free, "", "//limit/free/x", true},
		{"backslash out", free, "", `/limit/free/..\x`, true},
		{"encoded backslash out", free, "", "/limit/free/..%5cx", true},
		{"parameter with a backslash out", free, "", `/limit/free/..;\x`, true},
		{"backslash, dots out only without parameters", free, "", `/limit/free/a;\..\..\..\x`, true},
		{"parameters, still excepted", free, "", "/limit/free/a;v=1", false},
		{"backslash, still excepted", free, "", `/limit/free/a\b`, false},

		{"without Paths: parameters", health, "", "/healthz;x", true},
		{"without Paths: everything else", health, "/x", "/x", true},
		{"without Paths: excepted", health, "/healthz", "/healthz", false},
		{"without Paths: a route not known", health, "", "/healthz", false},
		{"without Paths: trailing slash", health, "", "/healthz/", true},
		{"without Paths: encoded", health, "", "/%68ealthz", true},
		{"without Paths: reached from elsewhere", health, "", "/files/../healthz", true},
		{"without Paths: no path at all", health, "", "", true},
	} {
		t.Run(test.name, func(t *testing.T) {
			if got := applies(test.rule, at(test.route, test.path)); got != test.limited {
				t.Errorf("%q at %q is limited: %v", test.path, test.route, got)
			}
		})
	}
}

func TestMethods(t *testing.T) {
	for _, test := range []struct {
		methods []string
		method  string
		want    bool
	}{
		{nil, "GET", true}, {nil, "BREW", true}, {nil, "", true},
		{[]string{"GET"}, "GET", true},
		{[]string{"GET"}, "HEAD", true}, // which runs the GET handler
		{[]string{"HEAD"}, "GET", false},
		{[]string{"HEAD"}, "HEAD", true},
		{[]string{"POST"}, "HEAD", false},
		{[]string{"POST", "PUT"}, "PUT", true},
		{[]string{"POST"}, "GET", false},
		{[]string{"POST"}, "post", true}, // which a handler of all methods serves
		{[]string{"GET"}, "OPTIONS", false},
	} {
		if got := applies(rule{Methods: test.methods}, call{method: test.method, path: "/x"}); got != test.want {
			t.Errorf("%q applies to %q: %v", test.methods, test.method, got)
		}
	}
	both := rule{Methods: []string{"GET"}, Paths: []string{"/x"}}
	if applies(both, call{method: "GET", path: "/y"}) || applies(both, call{method: "POST", path: "/x"}) || !applies(both, call{method: "HEAD", path: "/x"}) {
		t.Error("methods and paths do not hold together")
	}
}

// A rule ignores the differences that the router ignores: case, trailing slashes, both, or neither.
func TestLooseRouters(t *testing.T) {
	limit, exact := rule{Paths: []string{"/Limit/**"}}, rule{Paths: []string{"/Items"}}
	slashed, free := rule{Paths: []string{"/Items/"}}, rule{Except: []string{"/Healthz"}}
	const neither, letters, slashes, both = 0, 1, 2, 3
	for _, test := range []struct {
		rule rule
		path string
		want [4]bool // for neither, any case, any slash, both
	}{
		{limit, "/Limit/x", [4]bool{true, true, true, true}},
		{limit, "/LIMIT/x", [4]bool{letters: true, both: true}},
		{limit, "/%4cIMIT/x", [4]bool{letters: true, both: true}},
		{limit, "/files/../limit/X/", [4]bool{letters: true, both: true}},
		{limit, "/other", [4]bool{}},
		{exact, "/Items", [4]bool{true, true, true, true}},
		{exact, "/Items/", [4]bool{true, true, true, true}}, // its cleaned reading has no slash
		{exact, "/Items///", [4]bool{true, true, true, true}},
		{exact, "/items//", [4]bool{letters: true, both: true}},
		{rule{Paths: []string{"/{Items/,x}"}}, "/Items", [4]bool{slashes: true, both: true}},
		{slashed, "/Items", [4]bool{slashes: true, both: true}},
		{slashed, "/items", [4]bool{both: true}},
		{slashed, "/items/", [4]bool{letters: true, both: true}},
		{slashed, "/Items/", [4]bool{true, true, true, true}},
		// An excepted call is not limited: every reading must match.
		{free, "/Healthz", [4]bool{}},
		{free, "/healthz", [4]bool{neither: true, slashes: true}},
		{free, "/Healthz/", [4]bool{neither: true, letters: true}},
		{free, "/healthz/", [4]bool{neither: true, letters: true, slashes: true}},
		{free, "/%48ealthz", [4]bool{true, true, true, true}},
		// Routers fold ASCII alone: É is another letter than é.
		{rule{Paths: []string{"/É"}}, "/é", [4]bool{}},
		{rule{Paths: []string{"/"}}, "/", [4]bool{true, true, true, true}},
		{rule{Paths: []string{"/"}}, "//", [4]bool{true, true, true, true}},
	} {
		for loose, want := range test.want {
			v := at("", test.path)
			v.anyCase, v.anySlash = loose&letters != 0, loose&slashes != 0
			if got := applies(test.rule, v); got != want {
				t.Errorf("paths %q, except %q, call %q, any case %v, any slash %v: applies %v", test.rule.Paths, test.rule.Except, test.path, v.anyCase, v.anySlash, got)
			}
		}
		// Of a router that is not known, the rule applies if it applies for one of these.
		unsure := call{method: "GET", path: test.path, anyCase: true, anySlash: true, unsure: true}
		if got := applies(test.rule, unsure); got != slices.Contains(test.want[:], true) {
			t.Errorf("paths %q, except %q, call %q of a router that is not known: applies %v", test.rule.Paths, test.rule.Except, test.path, got)
		}
	}
}
