package adaptertest

import (
	"testing"

	"github.com/accesslimit/accesslimit/core"
)

// followScenarios are about rules that change while a service runs.
var followScenarios = []scenario{
	{name: "With and Allow follow a set of rules", run: ruleSetsAreFollowed},
}

// ruleSetsAreFollowed replaces the rules of a route, and of its handler, between calls.
func ruleSetsAreFollowed(t *testing.T, s *site) {
	limiter := s.limiter(t)
	rules := func(shop, account int) []core.Rule {
		return []core.Rule{
			{Name: "shop", Limit: core.PerHour(shop), Key: core.Global}, {Name: "account", Limit: core.PerHour(account)},
		}
	}
	set, err := limiter.RuleSet(rules(9, 1)...)
	if err != nil {
		t.Fatal(err)
	}
	check := set.MustCheck("account")
	s.serve(t, App{Limiter: limiter, Routes: []Route{{
		Path: "/shop/list", Guards: []*core.Guard{set.MustGuard("shop")},
		Handle: func(h Handling) {
			if h.Allow(check, "account:7") {
				h.Text("ok")
			}
		},
	}}})
	for _, step := range []struct {
		shop, account int
		statuses      []int
	}{{9, 1, []int{200, 429}}, {9, 2, []int{200, 429}}, {4, 9, []int{429}}, {5, 9, []int{200, 429}}} {
		if err := set.Replace("next", rules(step.shop, step.account)...); err != nil {
			t.Fatal(err)
		}
		for _, status := range step.statuses {
			s.want(t, status, "/shop/list")
		}
	}
}
