package limitertest

import (
	"context"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/core/operate"
)

// Guard makes a guard, which the service need not hold.
func Guard(t testing.TB, limiter *core.Limiter, rules ...core.Rule) *core.Guard {
	t.Helper()
	guard, err := limiter.Guard(rules...)
	if err != nil {
		t.Fatalf("Guard: %v", err)
	}
	return guard
}

// Attach makes a guard that the service holds, as a router would, until the test ends.
func Attach(t testing.TB, limiter *core.Limiter, rules ...core.Rule) *core.Guard {
	t.Helper()
	guard := Guard(t, limiter, rules...)
	t.Cleanup(func() { runtime.KeepAlive(guard) })
	return guard
}

// Ban bans a subject by hand.
func Ban(t testing.TB, limiter *core.Limiter, rule, subject string, span time.Duration) {
	t.Helper()
	if _, err := operate.New(limiter).Ban(context.Background(), rule, subject, span); err != nil {
		t.Fatal(err)
	}
}

// SetOverride gives a subject of a rule an override.
func SetOverride(t testing.TB, limiter *core.Limiter, rule, subject string, override operate.Override) {
	t.Helper()
	overrides, err := operate.New(limiter).Overrides(rule)
	if err == nil {
		err = overrides.Set(context.Background(), subject, override)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// ErrorOf returns the error of an act that also reports whether it changed anything.
func ErrorOf(_ bool, err error) error { return err }

// RuleOf returns what an Explanation says of a rule, which it has once.
func RuleOf(t testing.TB, x operate.Explanation, name string) operate.ExplainedRule {
	t.Helper()
	at := slices.IndexFunc(x.Rules, func(r operate.ExplainedRule) bool { return r.Name == name })
	if at < 0 || slices.ContainsFunc(x.Rules[at+1:], func(r operate.ExplainedRule) bool { return r.Name == name }) {
		t.Fatalf("%q is not there once: %v", name, x)
	}
	return x.Rules[at]
}
