package core_test

import (
	"reflect"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/accesslimit/accesslimit/core"
)

// Rules has what is attached, with the version and the place, and follows a set.
func TestRulesInForce(t *testing.T) {
	limiter := newLimiter(t, core.Options{})
	plain := newGuard(t, limiter, core.Rule{Name: "api", Seconds: 60, MaxCount: 7, Mode: core.DryRun}, core.Rule{Seconds: 1})
	plain.Check(newView("GET", "/users/:id"))
	check := limiter.MustCheck(core.Rule{Name: "post", Limit: core.PerHour(3)})
	set, err := limiter.RuleSet()
	if err != nil {
		t.Fatal(err)
	}
	if err := set.Replace("v1", core.Rule{Name: "set", Seconds: 1}); err != nil {
		t.Fatal(err)
	}
	following := set.MustGuard("set")
	if err := set.Replace("v2", core.Rule{Name: "set", Seconds: 2}); err != nil {
		t.Fatal(err)
	}
	rules, notListed := limiter.Rules()
	if len(rules) != 4 || notListed != 0 {
		t.Fatalf("the rules are %+v, %d not listed", rules, notListed)
	}
	for i, want := range []core.AttachedRule{
		{Rule: core.Rule{Limit: core.PerMinute(7)}, Names: []string{"api"}},
		{Rule: core.Rule{Limit: core.PerSecond(5)}, Names: []string{"GET /users/:id"}},
		{Rule: core.Rule{Limit: core.PerHour(3)}, Names: []string{"post"}, InHandler: true},
		{Rule: core.Rule{Limit: core.Per(5, 2*time.Second)}, Names: []string{"set"}, Version: "v2"},
	} {
		got := rules[i]
		if got.Rule.Limit != want.Rule.Limit || !reflect.DeepEqual(got.Names, want.Names) || got.InHandler != want.InHandler || got.Version != want.Version {
			t.Errorf("rule %d is %+v, want %+v", i, got, want)
		}
		if !strings.Contains(got.Place, "attached_rules_test.go:") && !strings.Contains(got.Place, "helpers_test.go:") {
			t.Errorf("rule %d stands at %q", i, got.Place)
		}
	}
	if rules[0].Rule.Mode != core.DryRun {
		t.Error("the copy lacks DryRun")
	}
	runtime.KeepAlive([]any{plain, check, following})
}
