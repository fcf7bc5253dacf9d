package core_test

import (
	"testing"

	"github.com/accesslimit/accesslimit/core"
)

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
		attach(t, limiter, c.rule)
		if rules, _ := limiter.Rules(); rules[0].CountsBy != c.want {
			t.Errorf("%s counts by %q, want %q", c.rule.Name, rules[0].CountsBy, c.want)
		}
	}
}
