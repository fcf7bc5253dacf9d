package adaptertest

import (
	"slices"
	"testing"

	"github.com/accesslimit/accesslimit/core"
)

// ownScenarios are about callers who ask for their own limits.
var ownScenarios = []scenario{
	{name: "callers see their own limits", run: callersSeeTheirOwn},
}

// callersSeeTheirOwn asks for the limits before and after calls, under rules that do not apply to
// that question itself.
func callersSeeTheirOwn(t *testing.T, s *site) {
	limiter := s.limiter(t, func(o *core.Options) { o.Identify = core.BearerToken(verify) })
	shop := core.Rule{Name: "shop", Seconds: 600, MaxCount: 2, Paths: []string{"/shop/**"}}
	order := core.Rule{Name: "order", Seconds: 600, MaxCount: 5, NeedLogin: true, Also: []core.Limit{core.PerDay(9)}}
	trial := core.Rule{Name: "trial", Seconds: 600, Mode: core.DryRun}
	own := limiter.MustGuard(shop, order, trial)
	s.serve(t, App{Limiter: limiter, Use: limit(shop), Routes: []Route{
		{Path: "/shop/list"},
		{Path: "/shop/order", limits: limit(order, trial)},
		{Path: "/me/limits", Handle: func(h Handling) { h.OwnLimits(own) }},
	}})
	const alice, bob = "Authorization: Bearer alice-token", "Authorization: Bearer bob-token"
	want := func(who string, left ...int) {
		t.Helper()
		all := []ownLimit{{"shop", 2, 0}, {"order", 5, 0}, {"order-24h", 9, 0}}[:len(left)]
		for i := range all {
			all[i].Remaining = left[i]
		}
		if s.adapter.RPC && len(all) > 2 {
			all[2].Name = "order" // its handler sends the rule's name
		}
		reply := s.want(t, 200, "/me/limits", who)
		if got := reply.ownLimits(); !slices.Equal(got, all) {
			t.Errorf("%s: the limits are %+v, want %+v; the reply is %q", who, got, all, reply.Body)
		}
	}
	want("X-Nobody: 1", 2)
	want(alice, 2, 5, 9)
	s.want(t, 200, "/shop/order", alice)
	want(alice, 1, 4, 8)
	want(bob, 1, 5, 9)
	s.want(t, 200, "/shop/list")
	s.want(t, 429, "/shop/order", alice)
	want(alice, 0, 4, 8)
	want("X-Nobody: 1", 0)
}
