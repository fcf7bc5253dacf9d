package adaptertest

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"testing"

	"github.com/accesslimit/accesslimit/core"
)

// settleScenarios are about calls whose handlers say what they have used.
var settleScenarios = []scenario{
	{name: "a handler settles what its call used", run: settled},
	{name: "an estimate that was too high is back before the next call", run: settledBeforeNext},
	{name: "an estimate stays if nobody settles it", run: unsettled},
	{name: "a handler settles after its caller has left", run: settledWhenLeft},
	{name: "a call that does not count is not billed", run: settledUncounted},
	{name: "a handler settles what a check charged", run: settledCheck},
}

// estimating is a rule that charges so many of 1000 tokens, until a handler settles them.
func estimating(estimate int) core.Rule {
	return core.Rule{Name: "tokens", Seconds: 600, MaxCount: 1000, Estimate: func(core.Request) int { return estimate }}
}

// billed serves routes under the rule, whose handlers receive their context.
func (s *site) billed(t *testing.T, rule core.Rule, handle map[string]func(Handling)) *core.Limiter {
	t.Helper()
	limiter := s.limiter(t)
	app := App{Limiter: limiter}
	for path, handle := range handle {
		app.Routes = append(app.Routes, Route{Path: path, limits: limit(rule), Handle: handle})
	}
	s.serve(t, app)
	return limiter
}

// settles returns a handler that settles, and fails if Settle does.
func settles(used ...int) func(Handling) {
	return func(h Handling) {
		for _, n := range used {
			if err := core.Settle(h.Context(), core.Costs{"tokens": n}); err != nil {
				h.Reply(http.StatusInternalServerError)
				return
			}
		}
		h.Text("ok")
	}
}

func (s *site) wantTokens(t *testing.T, limiter *core.Limiter, want int) {
	t.Helper()
	if got := s.left(t, limiter, "tokens"); got != want {
		t.Errorf("%d tokens are left, want %d", got, want)
	}
}

func settled(t *testing.T, s *site) {
	limiter := s.billed(t, estimating(100), map[string]func(Handling){
		"/ask/less": settles(30), "/ask/more": settles(400), "/ask/nothing": settles(0), "/ask/again": settles(1, 1), "/ask/twice": settles(1, 2),
		"/ask/other": func(h Handling) { h.Text(fmt.Sprint(core.Settle(h.Context(), core.Costs{"rows": 1}))) },
	})
	for _, call := range []struct {
		path         string
		status, left int
	}{{"/ask/less", 200, 970}, {"/ask/more", 200, 570}, {"/ask/nothing", 200, 570}, {"/ask/again", 200, 569}, {"/ask/twice", 500, 568}, {"/ask/other", 200, 468}} {
		s.want(t, call.status, call.path)
		s.wantTokens(t, limiter, call.left)
	}
}

// settledBeforeNext makes calls that each need all tokens. Their handlers settle when the reply is
// written.
func settledBeforeNext(t *testing.T, s *site) {
	s.billed(t, estimating(1000), map[string]func(Handling){
		"/ask/model": func(h Handling) { h.Text("answer"); _ = core.Settle(h.Context(), core.Costs{"tokens": 0}) },
	})
	client := s.adapter.Connect(t, s.dial)
	defer client.Close()
	for i := range 30 {
		if reply := s.doWith(t, client, newCall("GET", "/ask/model")); reply.Status != 200 {
			t.Fatalf("call %d got %d: %s", i, reply.Status, reply.Body)
		}
	}
}

func unsettled(t *testing.T, s *site) {
	contexts := make(chan context.Context, 1)
	limiter := s.billed(t, estimating(100), map[string]func(Handling){
		"/ask/silent": func(h Handling) { contexts <- h.Context(); h.Text("ok") },
		"/ask/panic":  func(Handling) { panic("a handler's own fault") },
	})
	s.want(t, 200, "/ask/silent")
	ctx := <-contexts
	eventually(t, "the call is over", func() bool { return errors.Is(core.Settle(ctx, core.Costs{"tokens": 100}), core.ErrBillUnknown) })
	s.wantTokens(t, limiter, 900)
	s.want(t, 500, "/ask/panic")
	s.wantTokens(t, limiter, 800)
}

func settledWhenLeft(t *testing.T, s *site) {
	gate, failed := newGate(t), make(chan error, 1)
	limiter := s.billed(t, estimating(100), map[string]func(Handling){
		"/ask/model": func(h Handling) { gate.hold(); failed <- core.Settle(h.Context(), core.Costs{"tokens": 30}) },
	})
	call := s.enter(t, gate, "/ask/model")
	call.abandon()
	close(call.leave)
	if err := <-failed; err != nil {
		t.Errorf("Settle after the caller has left: %v", err)
	}
	s.wantTokens(t, limiter, 970)
}

func settledUncounted(t *testing.T, s *site) {
	rule := estimating(100)
	rule.Count = s.received().success
	fail := func(h Handling) { h.Reply(http.StatusInternalServerError) }
	limiter := s.billed(t, rule, map[string]func(Handling){
		"/ask/fail":  fail,
		"/ask/less":  func(h Handling) { _ = core.Settle(h.Context(), core.Costs{"tokens": 30}); fail(h) },
		"/ask/more":  func(h Handling) { _ = core.Settle(h.Context(), core.Costs{"tokens": 400}); fail(h) },
		"/ask/model": settles(30),
	})
	for _, path := range []string{"/ask/fail", "/ask/less", "/ask/more"} {
		s.want(t, 500, path)
		s.wantTokens(t, limiter, 1000)
	}
	s.want(t, 200, "/ask/model")
	s.wantTokens(t, limiter, 970)
}

// settledCheck charges two rules of a check different estimates, all or none.
func settledCheck(t *testing.T, s *site) {
	limiter := s.limiter(t)
	input, output := estimating(1), estimating(1)
	input.Name, output.MaxCount = "input", 500
	check := limiter.MustCheck(input, output)
	s.serve(t, App{
		Limiter: limiter,
		Before: func(ctx context.Context) context.Context {
			ctx, err := check.WithEstimates(ctx, map[string]int{"input": 20, "tokens": 300})
			if err != nil {
				t.Error(err)
			}
			return ctx
		},
		Routes: []Route{{Path: "/ask/model", Handle: func(h Handling) {
			if h.Allow(check, "") {
				settles(200)(h)
			}
		}}},
	})
	s.want(t, 200, "/ask/model")
	s.wantTokens(t, limiter, 800)
	s.want(t, 200, "/ask/model")
	s.want(t, 429, "/ask/model") // 300 of 100
	if left := s.left(t, limiter, "input"); left != 960 {
		t.Errorf("%d of the other rule are left, want 960", left)
	}
}
