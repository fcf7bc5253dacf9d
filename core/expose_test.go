package core_test

import (
	"context"
	"testing"

	"github.com/accesslimit/accesslimit/core"
)

type ownKey struct{}

func TestWhatHandlersSee(t *testing.T) {
	limiter := newLimiter(t, core.Options{Expose: true, Identify: whoSays})
	outer := newGuard(t, limiter, core.Rule{Name: "outer", Seconds: 3600, NeedLogin: true})
	inner := newGuard(t, limiter, core.Rule{Name: "inner", Seconds: 3600, MaxCount: 9}, core.Rule{Name: "third", Seconds: 3600, MaxCount: 20})

	v := newView("GET", "/").as("alice")
	ctx, cancel := context.WithCancel(context.WithValue(background, ownKey{}, "own"))
	defer cancel()
	v.ctx = ctx
	first := wantStatus(t, outer, v, 200).Context
	if d, ok := core.DecisionFrom(first); !ok || d.Rule != "outer" || d.Key != "user:alice" || d.Remaining != 4 || !d.Allowed {
		t.Errorf("behind one limiter: %+v", d)
	}
	v.ctx = first
	second := wantStatus(t, inner, v, 200).Context
	if d, ok := core.DecisionFrom(second); !ok || d.Rule != "inner" || len(d.All) != 2 {
		t.Errorf("behind two: %+v", d)
	}
	for _, ctx := range []context.Context{first, second} {
		if user, ok := core.UserFrom(ctx); !ok || user != "alice" {
			t.Errorf("user %q", user)
		}
		if ctx.Value(ownKey{}) != "own" || ctx.Value([]int{}) != nil {
			t.Error("the caller's own values are lost")
		}
	}
	cancel()
	if second.Err() != context.Canceled {
		t.Error("the context does not end with the caller's")
	}
}

func TestWhatHandlersDoNotSee(t *testing.T) {
	rule := core.Rule{Name: "n", Seconds: 3600}
	hidden := newGuard(t, newLimiter(t, core.Options{Identify: whoSays}), rule)
	if answer := wantStatus(t, hidden, newView("GET", "/").as("alice"), 200); answer.Context != nil {
		t.Error("a context without Expose")
	}
	limiter := newLimiter(t, core.Options{Expose: true, Identify: whoSays})
	answer := wantStatus(t, newGuard(t, limiter, rule), newView("GET", "/").as("alice"), 200)
	if user, ok := core.UserFrom(answer.Context); ok {
		t.Errorf("user %q, whom no rule asked for", user)
	}
	rule.Methods = []string{"POST"}
	if answer := wantStatus(t, newGuard(t, limiter, rule), newView("GET", "/"), 200); answer.Context != nil {
		t.Error("a context where no rule applied")
	}
	if _, ok := core.DecisionFrom(background); ok {
		t.Error("a decision out of nothing")
	}
	if _, ok := core.UserFrom(background); ok {
		t.Error("a user out of nothing")
	}
}

// A handler behind NeedLogin finds its user also when the call cost nothing.
func TestUserOfACallThatCostsNothing(t *testing.T) {
	guard := newGuard(t, newLimiter(t, core.Options{Expose: true, Identify: whoSays}),
		core.Rule{Name: "n", Seconds: 3600, NeedLogin: true, Cost: cost(0)})
	answer := wantStatus(t, guard, newView("GET", "/").as("alice"), 200)
	if answer.Context == nil {
		t.Fatal("no context")
	}
	if user, _ := core.UserFrom(answer.Context); user != "alice" {
		t.Errorf("user %q", user)
	}
}

// OnDecision gets the call's own context, before the handler does.
func TestOnDecisionGetsTheContext(t *testing.T) {
	var got []any
	limiter := newLimiter(t, core.Options{OnDecision: func(ctx context.Context, _ core.Event) { got = append(got, ctx.Value(ownKey{})) }})
	ctx := context.WithValue(background, ownKey{}, "own")
	v := newView("GET", "/")
	v.ctx = ctx
	wantStatus(t, newGuard(t, limiter, core.Rule{Name: "n", Seconds: 1}), v, 200)
	if _, err := limiter.MustCounter("n", core.PerSecond(1)).Allow(ctx, "s"); err != nil {
		t.Fatal(err)
	}
	if _, err := peek(limiter, ctx, "n", "s", core.PerSecond(1)); err != nil {
		t.Fatal(err)
	}
	if len(got) != 2 || got[0] != "own" || got[1] != "own" {
		t.Errorf("OnDecision saw %v, want the context of two decisions", got)
	}
}
