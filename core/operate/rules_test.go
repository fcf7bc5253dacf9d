package operate_test

import (
	"reflect"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/core/operate"
)

// Rules has what is attached, with the version and the place, and follows a set.
func TestRulesInForce(t *testing.T) {
	limiter := newLimiter(t, core.Options{})
	plain := newGuard(t, limiter, core.Rule{Name: "api", Seconds: 60, MaxCount: 7, Mode: core.DryRun}, core.Rule{Seconds: 1})
	plain.Check(about("s"))
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
	rules, notListed, err := operate.New(limiter).Rules()
	if len(rules) != 4 || notListed != 0 || err != nil {
		t.Fatalf("the rules are %+v, %d not listed, %v", rules, notListed, err)
	}
	for i, want := range []operate.AttachedRule{
		{Rule: core.Rule{Limit: core.PerMinute(7)}, Names: []string{"api"}},
		{Rule: core.Rule{Limit: core.PerSecond(5)}, Names: []string{"GET /"}},
		{Rule: core.Rule{Limit: core.PerHour(3)}, Names: []string{"post"}, InHandler: true},
		{Rule: core.Rule{Limit: core.Per(5, 2*time.Second)}, Names: []string{"set"}, Version: "v2"},
	} {
		got := rules[i]
		if got.Rule.Limit != want.Rule.Limit || !reflect.DeepEqual(got.Names, want.Names) || got.InHandler != want.InHandler || got.Version != want.Version {
			t.Errorf("rule %d is %+v, want %+v", i, got, want)
		}
		if !strings.Contains(got.Place, "rules_test.go:") && !strings.Contains(got.Place, "helpers_test.go:") {
			t.Errorf("rule %d stands at %q", i, got.Place)
		}
	}
	if rules[0].Rule.Mode != core.DryRun {
		t.Error("the copy lacks DryRun")
	}
	runtime.KeepAlive([]any{plain, check, following})
}

// Rules says what each rule counts by, as far as it can tell.
func TestCountsBy(t *testing.T) {
	identify := func(core.Request) (string, error) { return "alice", nil }
	own := func(r core.Request) (string, error) { return core.Global(r) }
	for _, c := range []struct {
		rule core.Rule
		want string
	}{
		{core.Rule{Name: "default"}, "ip"}, {core.Rule{Name: "login", NeedLogin: true}, "user"}, {core.Rule{Name: "ip", Key: core.ByIP}, "ip"},
		{core.Rule{Name: "user", Key: core.ByUser}, "user"}, {core.Rule{Name: "host", Key: core.ByHost}, "host"},
		{core.Rule{Name: "route", Key: core.ByRoute}, "route"}, {core.Rule{Name: "global", Key: core.Global}, "global"},
		{core.Rule{Name: "own", Key: own}, ""}, {core.Rule{Name: "header", Key: core.ByHeader("X-Tenant")}, ""},
	} {
		limiter := newLimiter(t, core.Options{Identify: identify})
		c.rule.Limit = core.PerHour(5)
		guard := newGuard(t, limiter, c.rule)
		if rules, _, err := operate.New(limiter).Rules(); err != nil || rules[0].CountsBy != c.want {
			t.Errorf("%s counts by %q, want %q", c.rule.Name, rules[0].CountsBy, c.want)
		}
		runtime.KeepAlive(guard)
	}
}
