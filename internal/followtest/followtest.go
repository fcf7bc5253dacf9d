// Package followtest tests that an adapter's middleware and its Allow follow a set of rules.
package followtest

import (
	"log/slog"
	"testing"

	"github.com/accesslimit/accesslimit/core"
)

// Run calls a service while its rules are replaced. attach returns a service with one route, which
// decides by the guard, and whose handler decides by the check for the subject account:7. Each call
// of the service returns whether both let it pass.
func Run(t *testing.T, attach func(guard *core.Guard, check *core.Check) (call func() (passed bool))) {
	limiter, err := core.New(core.Options{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	defer limiter.Close()
	rules := func(shop, account int) []core.Rule {
		return []core.Rule{
			{Name: "shop", Limit: core.PerHour(shop), Key: core.Global}, {Name: "account", Limit: core.PerHour(account)},
		}
	}
	set, err := limiter.RuleSet(rules(9, 1)...)
	if err != nil {
		t.Fatal(err)
	}
	call := attach(set.MustGuard("shop"), set.MustCheck("account"))
	want := func(when string, passed ...bool) {
		t.Helper()
		for i := range passed {
			if call() != passed[i] {
				t.Errorf("%s: call %d passes: %v, want %v", when, i+1, !passed[i], passed[i])
			}
		}
	}
	replace := func(shop, account int) {
		t.Helper()
		if err := set.Replace("next", rules(shop, account)...); err != nil {
			t.Fatal(err)
		}
	}
	want("at first", true, false)
	replace(9, 2)
	want("with a higher limit in the handler", true, false)
	replace(4, 9)
	want("with a lower limit on the route", false)
	replace(5, 9)
	want("with one more on the route", true, false)
}
