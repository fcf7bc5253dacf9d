package core_test

import (
	"context"
	"errors"
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

// Reset by name forgets all that attached rules of this name counted for the subject, and nothing
// else.
func TestResetByName(t *testing.T) {
	onEveryDeployment(t, func(t *testing.T, options core.Options) {
		options.Identify = whoSays
		limiter := newLimiter(t, options)
		rule := core.Rule{Name: "api", Limit: core.PerHour(1), Also: []core.Limit{core.PerMinute(1)}, Ban: core.Ban{ByHand: true}, Key: core.ByUser}
		dry, other := rule, rule
		dry.Mode, other.Name = core.DryRun, "other"
		guard, others := newGuard(t, limiter, rule), newGuard(t, limiter, other)
		again, trial := newGuard(t, limiter, rule), newGuard(t, limiter, dry)
		for _, user := range []string{"alice", "bob"} {
			wantStatus(t, guard, newView("GET", "/").as(user), 200)
			wantStatus(t, others, newView("GET", "/").as(user), 200)
			wantStatus(t, trial, newView("GET", "/").as(user), 200)
		}
		ctx := operate.WithActor(background, "ops", "ticket 7")
		if changed, err := operate.New(limiter).Reset(ctx, "api", "user:alice"); err != nil || !changed {
			t.Fatalf("Reset: %v, %v", changed, err)
		}
		if changed, err := operate.New(limiter).Reset(ctx, "api", "user:alice"); err != nil || changed {
			t.Errorf("Reset again: %v, %v", changed, err)
		}
		wantStatus(t, guard, newView("GET", "/").as("alice"), 200)
		wantStatus(t, again, newView("GET", "/").as("bob"), 429)
		wantStatus(t, others, newView("GET", "/").as("alice"), 429)
		if got := auditOf(t, limiter); len(got) != 1 || got[0] != (operate.AuditEntry{Act: "reset", Rule: "api", Subject: "user:alice", Author: "ops", Note: "ticket 7"}) {
			t.Errorf("the audit is %+v", got)
		}
		runtime.KeepAlive(again)
	})
}

// Reset by name says what is wrong with a name or a subject.
func TestResetByNameOfNothing(t *testing.T) {
	limiter := newLimiter(t, core.Options{})
	guard := newGuard(t, limiter, byHand)
	for _, c := range [][2]string{{"", "s"}, {"n", ""}, {"n", "192.0.2.1"}, {"unknown", "s"}} {
		wrong := new(core.RuleError)
		if changed, err := operate.New(limiter).Reset(background, c[0], c[1]); changed || !errors.As(err, &wrong) {
			t.Errorf("Reset(%q, %q): %v, %v", c[0], c[1], changed, err)
		}
	}
	ended, cancel := context.WithCancel(background)
	cancel()
	if _, err := operate.New(limiter).Reset(ended, "n", "s"); !errors.Is(err, context.Canceled) {
		t.Errorf("after the end of the context: %v", err)
	}
	runtime.KeepAlive(guard)
}
