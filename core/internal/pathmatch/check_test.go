package pathmatch_test

import (
	"strings"
	"testing"

	"github.com/accesslimit/accesslimit/core/adapter"
	"github.com/accesslimit/accesslimit/core/internal/pathmatch"
)

// A pattern that no request can match, or that takes too long to match, is refused.
func TestCheckPattern(t *testing.T) {
	for pattern, want := range map[string]string{
		"/":                                     "",
		"/**":                                   "",
		"/a?b":                                  "",
		"/search?":                              "",
		"/{v1,v2}/{a,b,c}/*":                    "",
		"/[{]{a,b}":                             "",
		"/{[ab],c}":                             "",
		"/{[a,b],c}":                            "has a comma or a brace in brackets",
		`/{x,[\],]}`:                            "has a comma or a brace in brackets",
		`/\{a,b\}\\`:                            "",
		"/***":                                  "has three stars in a row",
		"/a/{*,b}**":                            "has three stars in a row",
		"/limit**":                              "has ** beside other characters",
		"/a{**/b,c}":                            "has ** beside other characters",
		`/\***/b`:                               "has ** beside other characters",
		"/**/**":                                "",
		"/**/**/":                               "ends in a slash behind **",
		"/{a/**/,b}":                            "ends in a slash behind **",
		"/users/:id":                            "",
		"/größe":                                "",
		"":                                      "must start with a slash",
		"users":                                 "must start with a slash",
		"https://a.test/users":                  "must start with a slash",
		"//a.test/users":                        "without a host",
		"/search?q=*":                           "has a query",
		"/search?page=1&q=*":                    "has a query",
		"/docs#limits":                          "has a fragment",
		"/a b":                                  "has a space",
		"/users ":                               "has a space",
		"/a\tb":                                 "has a space",
		"/[a":                                   "is not a pattern",
		"/users/{id}":                           "has braces around a single word",
		"/" + strings.Repeat("{a,b}", 6):        "",
		"/" + strings.Repeat("{a,b}", 7):        "more than 200 combinations",
		"/" + strings.Repeat("{a,a}", 40):       "more than 200 combinations",
		"/{" + strings.Repeat("a,", 199) + "b}": "",
		"/{" + strings.Repeat("a,", 200) + "b}": "more than 200 combinations",
		"/" + strings.Repeat("{{a,b},{c,d}}", 20):                     "more than 200 combinations",
		"/{[{]" + strings.Repeat("{a,b},", 20) + "}}":                 "is not a pattern",
		"/[{]" + strings.Repeat("{a,b},", 20):                         "more than 200 combinations",
		"/" + strings.Repeat(`{\,,\}}`, 20):                           "more than 200 combinations",
		"/" + strings.Repeat("{x,", 1000) + strings.Repeat("}", 1000): "more than 200 combinations",
	} {
		if got := pathmatch.CheckPattern(pattern); !strings.Contains(got, want) || want == "" && got != "" {
			t.Errorf("%.60q: %q, want %q", pattern, got, want)
		}
	}
}

// A scope that applies to no call says why.
func TestNever(t *testing.T) {
	const all, its = "its exceptions cover every path", "its exceptions cover all of its paths"
	for _, test := range []struct {
		rule rule
		want string
	}{
		{rule{}, ""},
		{rule{Methods: []string{"GET", "M-SEARCH"}, Paths: []string{"/a/**"}, Except: []string{"/a/b"}}, ""},
		{rule{Methods: []string{"GETT", "PSOT"}}, "method GETT, PSOT is not one that clients send"},
		{rule{Methods: []string{"GET", "GETT"}}, ""}, // it limits every GET
		{rule{Except: []string{"/**"}}, all},
		{rule{Paths: []string{"/a"}, Except: []string{"/b", "/**"}}, all},
		{rule{Except: []string{"/*"}}, ""},
		{rule{Paths: []string{"/a", "/b/*"}, Except: []string{"/b/*", "/a"}}, its},
		{rule{Paths: []string{"/a", "/b/*"}, Except: []string{"/a"}}, ""},
		{rule{Paths: []string{"/a", "/a/b/**"}, Except: []string{"/a/**"}}, its},
		{rule{Paths: []string{"/a/**"}, Except: []string{"/a/*"}}, ""},
		{rule{Paths: []string{"/ab"}, Except: []string{"/a/**"}}, ""},
		{rule{Paths: []string{"/x/a"}, Except: []string{"/*/**"}}, ""}, // not found, though it is so
	} {
		scope := pathmatch.NewScope(test.rule.Methods, test.rule.Paths, test.rule.Except)
		if got := scope.Never(); got != test.want {
			t.Errorf("%+v: %q, want %q", test.rule, got, test.want)
		}
	}
}

// routed is a call of a route.
type routed struct {
	adapter.View
	route string
}

func (v routed) Route() string { return v.route }

// A route that a pattern matches as it is has no other names of parameters: the exception that keeps
// the rule from it is no mistake.
func TestMisspelled(t *testing.T) {
	for _, test := range []struct{ pattern, route, want string }{
		{"/users/:id", "/users/{id}", "/users/:id"},
		{"/users/:id", "/users/:name", "/users/:id"},
		{"/users/:id", "/users/:id", ""},
		{"/users/:id/**", "/users/:id/avatar", ""},
		{"/users/:id", "/posts/:id", ""},
	} {
		scope := pathmatch.NewScope(nil, []string{test.pattern}, []string{"/users/*/avatar"})
		if got := scope.Misspelled(routed{route: test.route}); got != test.want {
			t.Errorf("%s on %s: %q, want %q", test.pattern, test.route, got, test.want)
		}
	}
}

// A path can match routes of any framework.
func TestCanMatch(t *testing.T) {
	for _, test := range []struct {
		route, path string
		want        bool
	}{
		{"/", "/", true}, {"/", "/a", false}, {"/a", "/", false}, {"/a", "/a/", true}, {"/a/", "/a", true}, {"/a", "/b", false}, {"/a", "/A", false},
		{"/:id", "/7", true}, {"/:id", "/7/8", false}, {"/posts/{id}", "/posts/7", true}, {"/posts/{id}", "/users/7", false}, {"/posts/{id}", "/posts", false},
		{"/:id<int>", "/7", true}, {"/a/:id?", "/a", true}, {"/a/*file", "/a/b/c", true}, {"/a/{file...}", "/a/b/c", true}, {"/a/{$}", "/a/", true}, {"/a/{$}", "/a/b", false}, {"/{$}", "/", true},
		{"/*", "/anything/at/all", true}, {"/a/+", "/a/b/c", true}, {"/a/*file", "/b", false},
		{"/a/", "/a/b/c", true}, {"/a/", "/b/c", false},
	} {
		if got := pathmatch.CanMatch(test.route, test.path, 0); got != test.want {
			t.Errorf("%s for %s: %t, want %t", test.route, test.path, got, test.want)
		}
	}
	if !pathmatch.CanMatch("/Posts/:id", "/posts/7", pathmatch.AnyCase) {
		t.Error("the case of letters is not ignored")
	}
}

// The longest of several subtrees goes first, and any other route before all of them.
func TestPrecision(t *testing.T) {
	ascending := []string{"/a/", "/a/b/", "/a/:id"}
	for i, route := range ascending[1:] {
		if before := ascending[i]; pathmatch.Precision(route) <= pathmatch.Precision(before) {
			t.Errorf("%s is not before %s", route, before)
		}
	}
	if pathmatch.Precision("/") != pathmatch.Precision("/a") {
		t.Error("/ is a subtree")
	}
}
