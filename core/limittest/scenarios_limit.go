package limittest

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/accesslimit/accesslimit/core"
)

// limitScenarios are about what is counted.
var limitScenarios = []scenario{
	{name: "allowed until the limit, then refused", run: allowedThenRefused},
	{name: "a refused call does not run the handler", run: refusedRunsNothing},
	{name: "never one too many at once", run: neverOneTooMany},
	{name: "a named rule is shared by its routes", run: namedIsShared},
	{name: "an unnamed rule counts each route by itself", run: unnamedIsPerRoute},
	{name: "a route is its pattern", run: routeIsPattern, httpOnly: true},
	{name: "all rules of a middleware are charged or none", run: allOrNone},
	{name: "stacked middlewares: the outer stays charged", run: stackedMiddlewares},
	{name: "every algorithm", run: everyAlgorithm},
	{name: "calls weigh what Cost says", run: costs},
}

func allowedThenRefused(t *testing.T, s *site) {
	s.serve(t, App{Limiter: s.limiter(t), Routes: []Route{{Path: "/shop/list", Limits: limit(core.Rule{Seconds: 600, MaxCount: 3})}}})
	for i := range 3 {
		if reply := s.want(t, 200, "/shop/list"); reply.Body != "ok" {
			t.Fatalf("call %d: body %q", i, reply.Body)
		}
	}
	for range 3 {
		s.want(t, 429, "/shop/list")
	}
}

func refusedRunsNothing(t *testing.T, s *site) {
	var ran atomic.Int32
	s.serve(t, App{Limiter: s.limiter(t), Routes: []Route{{
		Path: "/shop/list", Limits: limit(core.Rule{Seconds: 600, MaxCount: 2}),
		Handle: func(h Handling) { ran.Add(1); h.Text("ok") },
	}}})
	for range 5 {
		s.get(t, "/shop/list")
	}
	if n := ran.Load(); n != 2 {
		t.Fatalf("the handler ran %d times, want 2", n)
	}
}

func neverOneTooMany(t *testing.T, s *site) {
	s.serve(t, App{Limiter: s.limiter(t), Routes: []Route{{Path: "/shop/list", Limits: limit(core.Rule{Seconds: 600, MaxCount: 10})}}})
	var callers sync.WaitGroup
	var allowed atomic.Int32
	for range 40 {
		callers.Go(func() {
			if s.get(t, "/shop/list").Status == 200 {
				allowed.Add(1)
			}
		})
	}
	callers.Wait()
	if n := allowed.Load(); n != 10 {
		t.Fatalf("%d calls passed, want 10", n)
	}
}

func namedIsShared(t *testing.T, s *site) {
	rule := core.Rule{Name: "shop", Seconds: 600, MaxCount: 2}
	s.serve(t, App{Limiter: s.limiter(t), Routes: []Route{
		{Path: "/shop/list", Limits: limit(rule)}, {Path: "/shop/show", Limits: limit(rule)},
	}})
	s.want(t, 200, "/shop/list")
	s.want(t, 200, "/shop/show")
	s.want(t, 429, "/shop/list")
	s.want(t, 429, "/shop/show")
}

func unnamedIsPerRoute(t *testing.T, s *site) {
	rule := core.Rule{Seconds: 600, MaxCount: 1}
	routes := []Route{{Path: "/shop/list"}, {Path: "/shop/show"}}
	app := App{Limiter: s.limiter(t), Routes: routes, Use: limit(rule)}
	if s.adapter.NoRouteInUse {
		app.Use = nil
		app.Routes[0].Limits, app.Routes[1].Limits = limit(rule), limit(rule)
	}
	s.serve(t, app)
	s.want(t, 200, "/shop/list")
	s.want(t, 200, "/shop/show")
	s.want(t, 429, "/shop/list")
	s.want(t, 429, "/shop/show")
}

func routeIsPattern(t *testing.T, s *site) {
	s.serve(t, App{Limiter: s.limiter(t), Routes: []Route{{Path: "/users/{id}", Limits: limit(core.Rule{Seconds: 600, MaxCount: 2})}}})
	s.want(t, 200, "/users/1")
	s.want(t, 200, "/users/2")
	s.want(t, 429, "/users/3")
}

func allOrNone(t *testing.T, s *site) {
	few, many := core.Rule{Name: "few", Seconds: 600, MaxCount: 1}, core.Rule{Name: "many", Seconds: 600, MaxCount: 3}
	s.serve(t, App{Limiter: s.limiter(t), Routes: []Route{
		{Path: "/shop/both", Limits: limit(many, few)}, {Path: "/shop/many", Limits: limit(many)},
	}})
	s.want(t, 200, "/shop/both")
	for range 5 {
		s.want(t, 429, "/shop/both")
	}
	s.want(t, 200, "/shop/many") // the refused ones took nothing of many
	s.want(t, 200, "/shop/many")
	s.want(t, 429, "/shop/many")
}

func stackedMiddlewares(t *testing.T, s *site) {
	s.serve(t, App{
		Limiter: s.limiter(t), Use: limit(core.Rule{Name: "outer", Seconds: 600, MaxCount: 3}),
		Routes: []Route{
			{Path: "/shop/inner", Limits: limit(core.Rule{Name: "inner", Seconds: 600, MaxCount: 1})},
			{Path: "/shop/plain"},
		},
	})
	reply := s.want(t, 200, "/shop/inner")
	wantEntries(t, reply, `"outer";r=2;t=`, `"inner";r=0;t=`)
	s.want(t, 429, "/shop/inner")
	s.want(t, 200, "/shop/plain")
	s.want(t, 429, "/shop/plain") // the third call was refused inside, but charged outside
}

func everyAlgorithm(t *testing.T, s *site) {
	for _, a := range []core.Algorithm{core.SlidingWindow, core.FixedWindow, core.TokenBucket} {
		s.serve(t, App{Limiter: s.limiter(t), Routes: []Route{{
			Path: "/shop/list", Limits: limit(core.Rule{Seconds: 600, MaxCount: 2, Algorithm: a}),
		}}})
		s.want(t, 200, "/shop/list")
		s.want(t, 200, "/shop/list")
		s.want(t, 429, "/shop/list")
	}
}

func costs(t *testing.T, s *site) {
	weigh := func(r core.Request) (cost int) {
		fmt.Sscan(r.Header("X-Weight")[0], &cost)
		return cost
	}
	s.serve(t, App{Limiter: s.limiter(t), Routes: []Route{{
		Path: "/shop/hook", Limits: limit(core.Rule{Seconds: 600, MaxCount: 10, Cost: weigh}),
	}}})
	s.want(t, 200, "/shop/hook", "X-Weight: 8")
	s.want(t, 429, "/shop/hook", "X-Weight: 3")
	s.want(t, 200, "/shop/hook", "X-Weight: 0")
	s.want(t, 400, "/shop/hook", "X-Weight: 11")
	s.want(t, 200, "/shop/hook", "X-Weight: 2")
	s.want(t, 200, "/shop/hook", "X-Weight: 0")
	s.want(t, 429, "/shop/hook", "X-Weight: -7")
}
