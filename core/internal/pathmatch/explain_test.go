package pathmatch_test

import (
	"testing"

	"github.com/accesslimit/accesslimit/core/internal/pathmatch"
)

// Explain says which reading decided.
func TestExplain(t *testing.T) {
	for _, test := range []struct {
		rule rule
		call call
		want string
	}{
		{rule{}, at("/x", "/x"), "it applies to every call"},
		{rule{Methods: []string{"POST", "PUT"}}, at("/x", "/x"), "method GET is not POST or PUT"},
		{rule{Methods: []string{"GET"}}, call{method: "HEAD"}, "method HEAD matches GET"},
		{rule{Methods: []string{"GET"}}, call{method: "P\nUT"}, `method "P\nUT" is not GET`},
		{rule{Methods: []string{"POST"}}, call{path: "/pkg.Service/Do"}, "calls without a method, as in gRPC, match POST"},
		{rule{Paths: []string{"/limit/**"}}, at("", "/limit/x"), `path "/limit/x" matches "/limit/**"`},
		{rule{Paths: []string{"/a", "/limit/:id"}}, at("/limit/:id", "/limit/x"), `route "/limit/:id" matches "/limit/:id"`},
		{rule{Paths: []string{"/limit/x"}}, at("/*any", "/limit/%78"), `decoded path "/limit/x" matches "/limit/x"`},
		{rule{Paths: []string{"/limit/x"}}, at("/*any", "/a/../limit//x"), `cleaned path "/limit/x" matches "/limit/x"`},
		{rule{Paths: []string{"/x"}}, at("/*any", "//host/x"), `path behind a host "/x" matches "/x"`},
		{rule{Paths: []string{"/Limit"}}, call{method: "GET", path: "/LIMIT/", anyCase: true, anySlash: true}, `path "/LIMIT/" matches "/Limit"`},
		{rule{Paths: []string{"/limit/**"}}, at("/x", "/x"), `route "/x" does not match "/limit/**"`},
		{rule{Paths: []string{"/a", "/b"}}, at("", "/x"), `path "/x" matches none of "/a", "/b"`},
		{rule{Except: []string{"/healthz"}}, at("/healthz", "/healthz"), `excepted: every reading matches "/healthz"`},
		{rule{Except: []string{"/healthz"}}, at("/x", "/x"), `it is not excepted, because the route "/x" does not match "/healthz"`},
		{rule{Paths: []string{"/**"}, Except: []string{"/a/*", "/b"}}, at("/a/*", "/b"), `excepted: every reading matches "/a/*" or "/b"`},
		{rule{Paths: []string{"/**"}, Except: []string{"/a"}}, at("/a", "/a%2f"), `route "/a" matches "/**"; it is not excepted, because the path "/a%2f" does not match "/a"`},
		{rule{Methods: []string{"GET"}, Except: []string{"/a"}}, at("", "/b/../a"), `it is not excepted, because the path "/b/../a" does not match "/a"`},
	} {
		scope := pathmatch.NewScope(test.rule.Methods, test.rule.Paths, test.rule.Except)
		if _, got := pathmatch.Explain(&scope, test.call.method, test.call.route, test.call.path, test.call.loose()); got != test.want {
			t.Errorf("%+v of %+v:\ngot  %s\nwant %s", test.call, test.rule, got, test.want)
		}
	}
}
