package adaptertest

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

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
	{name: "calls cost what Cost returns", run: costs},
	{name: "calls are counted by their Host", run: countedByHost},
	{name: "calls cost by the length of their bodies", run: costsBySize, httpOnly: true},
}

// countedByHost checks that a host is the same subject in upper and lower case.
func countedByHost(t *testing.T, s *site) {
	limiter := s.limiter(t)
	s.serve(t, App{Limiter: limiter, Routes: []Route{{
		Path: "/shop/list", limits: limit(core.Rule{Name: "host", Seconds: 600, MaxCount: 2, Key: core.ByHeader("Host")}),
	}}})
	s.want(t, 200, "/shop/list", "Host: a.test")
	s.want(t, 200, "/shop/list", "Host: A.Test")
	s.want(t, 429, "/shop/list", "Host: a.test")
	s.want(t, 200, "/shop/list", "Host: a.test:8080")
	s.want(t, 200, "/shop/list", "Host: b.test")
	left := 1
	if !s.adapter.RPC { // the target's host replaces the header's
		s.doRaw(t, "GET", "http://B.test/shop/list")
		left = 0
	}
	d, err := limiter.MustCounter("host", core.Limit{Max: 2, Window: 10 * time.Minute}).Peek(context.Background(), "header:host:"+core.Digest("b.test"))
	if err != nil || d.Remaining != left {
		t.Errorf("%d are left of the host b.test (%v), want %d", d.Remaining, err, left)
	}
}

func allowedThenRefused(t *testing.T, s *site) {
	s.serve(t, App{Limiter: s.limiter(t), Routes: []Route{{Path: "/shop/list", limits: limit(core.Rule{Seconds: 600, MaxCount: 3})}}})
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
		Path: "/shop/list", limits: limit(core.Rule{Seconds: 600, MaxCount: 2}),
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
	s.serve(t, App{Limiter: s.limiter(t), Routes: []Route{{Path: "/shop/list", limits: limit(core.Rule{Seconds: 600, MaxCount: 10})}}})
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
		{Path: "/shop/list", limits: limit(rule)}, {Path: "/shop/show", limits: limit(rule)},
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
	if !s.adapter.can(RouteInUse) {
		app.Use = nil
		app.Routes[0].limits, app.Routes[1].limits = limit(rule), limit(rule)
	}
	s.serve(t, app)
	s.want(t, 200, "/shop/list")
	s.want(t, 200, "/shop/show")
	s.want(t, 429, "/shop/list")
	s.want(t, 429, "/shop/show")
}

func routeIsPattern(t *testing.T, s *site) {
	s.serve(t, App{Limiter: s.limiter(t), Routes: []Route{{Path: "/users/{id}", limits: limit(core.Rule{Seconds: 600, MaxCount: 2})}}})
	s.want(t, 200, "/users/1")
	s.want(t, 200, "/users/2")
	s.want(t, 429, "/users/3")
}

func allOrNone(t *testing.T, s *site) {
	few, many := core.Rule{Name: "few", Seconds: 600, MaxCount: 1}, core.Rule{Name: "many", Seconds: 600, MaxCount: 3}
	s.serve(t, App{Limiter: s.limiter(t), Routes: []Route{
		{Path: "/shop/both", limits: limit(many, few)}, {Path: "/shop/many", limits: limit(many)},
	}})
	s.want(t, 200, "/shop/both")
	for range 5 {
		s.want(t, 429, "/shop/both")
	}
	s.want(t, 200, "/shop/many") // the refused calls took nothing from many
	s.want(t, 200, "/shop/many")
	s.want(t, 429, "/shop/many")
}

func stackedMiddlewares(t *testing.T, s *site) {
	s.serve(t, App{
		Limiter: s.limiter(t), Use: limit(core.Rule{Name: "outer", Seconds: 600, MaxCount: 3}),
		Routes: []Route{
			{Path: "/shop/inner", limits: limit(core.Rule{Name: "inner", Seconds: 600, MaxCount: 1})},
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
			Path: "/shop/list", limits: limit(core.Rule{Limit: core.Limit{Max: 2, Window: 600 * time.Second, Algorithm: a}}),
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
		Path: "/shop/hook", limits: limit(core.Rule{Seconds: 600, MaxCount: 10, Cost: weigh}),
	}}})
	s.want(t, 200, "/shop/hook", "X-Weight: 8")
	s.want(t, 429, "/shop/hook", "X-Weight: 3")
	s.want(t, 200, "/shop/hook", "X-Weight: 0")
	s.want(t, 400, "/shop/hook", "X-Weight: 11")
	s.want(t, 200, "/shop/hook", "X-Weight: 2")
	s.want(t, 200, "/shop/hook", "X-Weight: 0")
	s.want(t, 429, "/shop/hook", "X-Weight: -7")
}

func costsBySize(t *testing.T, s *site) {
	for _, test := range []struct {
		sent         string
		status, left int
		lines        []string
		method       string // unset: POST
	}{
		{"no body", 200, 9, nil, ""},
		{"GET", 200, 9, nil, "GET"},
		{"OPTIONS", 200, 9, nil, "OPTIONS"},
		{"GET with a body", 200, 7, body(250), "GET"},
		{"an empty body", 200, 9, []string{"Content-Length: 0"}, ""},
		{"one byte", 200, 9, body(1), ""},
		{"one unit", 200, 9, body(100), ""},
		{"two and a half units", 200, 7, body(250), ""},
		{"as much as fits", 200, 0, body(1000), ""},
		{"more than fits", 413, 10, body(1001), ""},
		{"chunks", 200, 0, []string{chunked(strings.Repeat("x", 1000))}, ""},
		{"GET in chunks", 200, 0, []string{chunked(strings.Repeat("x", 1000))}, "GET"},
	} {
		limiter, method := s.limiter(t), cmp.Or(test.method, "POST")
		s.serve(t, App{Limiter: limiter, Routes: []Route{{Method: method, Path: "/shop/hook", limits: limit(
			core.Rule{Name: "hook", Seconds: 600, MaxCount: 10, Also: []core.Limit{core.PerHour(1000)}, Cost: core.CostBySize(100)},
		)}}})
		if reply := s.doRaw(t, method, "/shop/hook", test.lines...); reply.Status != test.status {
			t.Errorf("%s: status %d, want %d: %s", test.sent, reply.Status, test.status, reply.Body)
		}
		for max, left := range map[int]int{10: test.left, 1000: 990 + test.left} {
			window := map[int]time.Duration{10: 10 * time.Minute, 1000: time.Hour}[max]
			d, err := limiter.MustCounter("hook", core.Limit{Max: max, Window: window}).Peek(context.Background(), "ip:127.0.0.1")
			if err != nil || d.Remaining != left {
				t.Errorf("%s: %d of %d are left (%v), want %d", test.sent, d.Remaining, max, err, left)
			}
		}
	}
}

// body returns the lines of a request with a body of this length.
func body(bytes int) []string {
	return []string{fmt.Sprint("Content-Length: ", bytes), "", strings.Repeat("x", bytes)}
}
