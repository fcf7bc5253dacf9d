package adaptertest

import (
	"net/http"
	"testing"

	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/core/operate"
)

// explainScenarios are about Explain, which tells operators how a call would be decided.
var explainScenarios = []scenario{
	{name: "what a call gets is explained", run: callsAreExplained},
}

// callsAreExplained compares what calls get with what Explain says just before.
func callsAreExplained(t *testing.T, s *site) {
	limiter := s.limiter(t, func(o *core.Options) { o.Identify = core.BearerToken(verify) })
	s.serve(t, App{
		Limiter: limiter, Use: limit(core.Rule{Name: "all", Seconds: 600, MaxCount: 9, Paths: []string{"/shop/**"}}),
		Routes: []Route{
			{Path: "/shop/list", limits: limit(core.Rule{Seconds: 600, MaxCount: 1})},
			{Path: "/shop/order", limits: limit(core.Rule{Name: "order", Seconds: 600, MaxCount: 1, NeedLogin: true})},
			{Path: "/shop/free"},
		},
	})
	statuses := map[core.Reason]int{core.Allowed: 200, core.LimitExceeded: 429, core.NotLoggedIn: 401}
	for _, path := range []string{"/shop/list", "/shop/order", "/shop/free"} { // so that Explain knows the routes
		s.get(t, path)
	}
	for i, call := range []struct{ path, token, rule string }{
		{"/shop/free", "alice-token", ""}, {"/shop/list", "", s.routeRule("/shop/list")}, {"/shop/order", "", "order"}, {"/shop/order", "alice-token", ""},
		{"/shop/order", "alice-token", "order"}, {"/shop/order", "bob-token", ""}, {"/shop/free", "", "all"}, {"/shop/order", "bob-token", "all"},
	} {
		info := operate.Call{Method: "GET", Path: call.path, RemoteAddr: "127.0.0.1:1", Header: http.Header{"Authorization": {"Bearer " + call.token}}}
		if s.adapter.RPC {
			info.Method = ""
		}
		x, err := operate.New(limiter).Explain(t.Context(), info)
		if err != nil {
			t.Fatal(err)
		}
		reply := s.get(t, call.path, "Authorization: Bearer "+call.token)
		if reply.Status != statuses[x.Reason] || x.Rule != call.rule {
			t.Errorf("call %d: status %d, want it to be refused by %q: %v", i, reply.Status, call.rule, x)
		}
	}
}

// routeRule returns the name of an unnamed rule on a route.
func (s *site) routeRule(route string) string {
	if s.adapter.RPC {
		return route
	}
	return "GET " + route
}
