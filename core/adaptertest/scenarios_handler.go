package adaptertest

import (
	"context"
	"sync"
	"testing"

	"github.com/accesslimit/accesslimit/core"
)

// handlerScenarios are about what handlers and services see.
var handlerScenarios = []scenario{
	{name: "Allow inside a handler", run: allowInside, httpOnly: true},
	{name: "OnDecision is called for of every call", run: onDecision},
	{name: "handlers see the decision and the user", run: exposed},
	{name: "handlers see nothing unless asked", run: notExposed},
	{name: "a panicking handler harms nobody else", run: panicking},
}

func allowInside(t *testing.T, s *site) {
	limiter := s.limiter(t)
	login := limiter.MustCheck(core.Rule{Name: "login", Seconds: 600, MaxCount: 2})
	account := "account:carol"
	s.serve(t, App{Limiter: limiter, Routes: []Route{{Path: "/shop/login", Handle: func(h Handling) {
		if h.Allow(login, account) {
			h.Text("welcome")
		}
	}}}})
	reply := s.want(t, 200, "/shop/login")
	wantEntries(t, reply, `"login";r=1;t=`)
	s.want(t, 200, "/shop/login")
	if reply := s.want(t, 429, "/shop/login"); reply.Header.Get("Retry-After") == "" || reply.Body == "" {
		t.Errorf("the refusal is %+v", reply)
	}
	account = "account:dave"
	s.want(t, 200, "/shop/login")
	account = "" // counts by the rule's own key, the client's address
	s.want(t, 200, "/shop/login")
}

func onDecision(t *testing.T, s *site) {
	var mu sync.Mutex
	var decisions []core.Decision
	limiter := s.limiter(t, identifiedBy(core.BearerToken(verify)), func(o *core.Options) {
		o.OnDecision = func(_ context.Context, e core.Event) {
			d := e.Decision

			mu.Lock()
			defer mu.Unlock()
			decisions = append(decisions, d)
		}
	})
	s.serve(t, App{Limiter: limiter, Routes: []Route{
		{Path: "/shop/list", limits: limit(core.Rule{Name: "list", Seconds: 600, MaxCount: 1})},
		{Path: "/shop/reply", limits: limit(core.Rule{Name: "reply", Seconds: 600, NeedLogin: true})},
	}})
	s.want(t, 200, "/shop/list")
	s.want(t, 429, "/shop/list")
	s.want(t, 401, "/shop/reply")
	s.want(t, 200, "/shop/reply", "Authorization: Bearer alice-token")
	mu.Lock()
	defer mu.Unlock()
	want := []core.Decision{
		{Allowed: true, Reason: core.Allowed, Rule: "list", Key: "ip:127.0.0.1"},
		{Reason: core.LimitExceeded, Rule: "list", Key: "ip:127.0.0.1"},
		{Reason: core.NotLoggedIn, Rule: "reply"},
		{Allowed: true, Reason: core.Allowed, Rule: "reply", Key: "user:alice"},
	}
	if len(decisions) != len(want) {
		t.Fatalf("%d decisions, want %d: %+v", len(decisions), len(want), decisions)
	}
	for i, w := range want {
		h := decisions[i]
		if h.Allowed != w.Allowed || h.Reason != w.Reason || h.Rule != w.Rule || h.Key != w.Key {
			t.Errorf("decision %d is %+v, want %+v", i, h, w)
		}
	}
}

func exposed(t *testing.T, s *site) {
	limiter := s.limiter(t, identifiedBy(core.BearerToken(verify)), func(o *core.Options) { o.Expose = true })
	s.serve(t, App{Limiter: limiter, Use: limit(core.Rule{Name: "all", Seconds: 600}), Routes: []Route{{
		Path: "/shop/reply", limits: limit(core.Rule{Name: "reply", Seconds: 600, MaxCount: 7, NeedLogin: true}),
		Handle: func(h Handling) {
			d, _ := core.DecisionFrom(h.Context())
			user, _ := core.UserFrom(h.Context())
			h.Text(d.Rule + " " + d.Limit.String() + " " + user)
		},
	}}})
	if reply := s.want(t, 200, "/shop/reply", "Authorization: Bearer bob-token"); reply.Body != "reply 7/10m bob" {
		t.Errorf("the handler saw %q", reply.Body)
	}
}

func notExposed(t *testing.T, s *site) {
	s.serve(t, App{Limiter: s.limiter(t), Routes: []Route{{
		Path: "/shop/list", limits: limit(core.Rule{Seconds: 600}),
		Handle: func(h Handling) {
			if _, ok := core.DecisionFrom(h.Context()); ok {
				h.Text("seen")
				return
			}
			h.Text("nothing")
		},
	}}})
	if reply := s.want(t, 200, "/shop/list"); reply.Body != "nothing" {
		t.Errorf("the handler saw %q", reply.Body)
	}
}

func panicking(t *testing.T, s *site) {
	rule := core.Rule{Name: "shop", Seconds: 600, MaxCount: 3}
	s.serve(t, App{Limiter: s.limiter(t), Routes: []Route{
		{Path: "/shop/panic", limits: limit(rule), Handle: func(Handling) { panic("a handler's own fault") }},
		{Path: "/shop/list", limits: limit(rule)},
	}})
	s.want(t, 500, "/shop/panic")
	s.want(t, 500, "/shop/panic")
	s.want(t, 200, "/shop/list")
	s.want(t, 429, "/shop/list") // calls that panicked are charged too
}
