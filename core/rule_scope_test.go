package core_test

import (
	"testing"

	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/core/adapter"
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

// A rule applies by the call's method, route and path, as the framework's router understands them.
func TestScopes(t *testing.T) {
	paths, methods, except := core.Rule{Paths: []string{"/Limit/**"}}, core.Rule{Methods: []string{"GET"}}, core.Rule{Except: []string{"/healthz"}}
	for name, test := range map[string]struct {
		rule core.Rule
		call adapter.View
		want bool
	}{
		"path":           {paths, at("", "/Limit/x"), true},
		"route":          {paths, at("/Limit/:id", "/x"), true},
		"decoded path":   {paths, at("", "/x/..%2fLimit/x"), true},
		"another path":   {paths, at("/x", "/limit/x"), false},
		"any case":       {paths, looseView{at("", "/limit/x"), true, false}, true},
		"any slash":      {core.Rule{Paths: []string{"/items/"}}, looseView{at("", "/items"), false, true}, true},
		"method":         {methods, newView("HEAD", "/"), true},
		"another method": {methods, newView("POST", "/"), false},
		"no method":      {methods, newView("", "/"), true},
		"excepted":       {except, at("", "/healthz"), false},
		"not excepted":   {except, at("", "/"), true},
	} {
		var heard decisions
		test.rule.Name, test.rule.Seconds = "n", 1
		wantStatus(t, newGuard(t, newLimiter(t, core.Options{OnDecision: heard.note}), test.rule), test.call, 200)
		if got := len(heard.heard) == 1; got != test.want {
			t.Errorf("%s: applies %v", name, got)
		}
	}
}
