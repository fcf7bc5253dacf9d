package adaptertest

import (
	"fmt"
	"testing"

	"github.com/accesslimit/accesslimit/core"
)

// endings returns the ways for a call to end in every framework, and the adapter's own.
func (s *site) endings() []Ending {
	code := map[int]int{200: 200, 201: 201, 401: 401, 404: 404, 500: 500}
	if s.adapter.RPC {
		code = map[int]int{200: 0, 201: 0, 401: 16, 404: 5, 500: 13}
	}
	all := []Ending{
		{Name: "nothing is written", Handle: func(Handling) {}, Outcome: code[200]},
		{Name: "panic", Handle: func(Handling) { panic("a handler's own fault") }, Outcome: code[500]},
		{Name: "panic, recovered inside", Handle: func(Handling) { panic("a handler's own fault") }, Outcome: code[500], Recovers: true},
	}
	for status, outcome := range code {
		all = append(all, Ending{Name: fmt.Sprint(status), Handle: func(h Handling) { h.Reply(status) }, Outcome: outcome})
	}
	return append(all, s.adapter.Endings...)
}

// everyEnding checks that Count is called with the outcome that the caller got, and that its result
// decides whether the call is charged.
func everyEnding(t *testing.T, s *site) {
	received, limiter, endings := s.received(), s.limiter(t), s.endings()
	rules := limit(
		core.Rule{Name: "failures", Seconds: 600, MaxCount: 1000, Count: received.failure},
		core.Rule{Name: "successes", Seconds: 600, MaxCount: 1000, Count: received.success},
	)
	var routes []Route
	for i, ending := range endings {
		path := fmt.Sprintf("/end/e%d", i)
		routes = append(routes, Route{Path: path, limits: rules, Handle: ending.Handle, Recovers: ending.Recovers})
		if !s.adapter.RPC {
			routes = append(routes, Route{Method: "HEAD", Path: path, limits: rules, Handle: ending.Handle, Recovers: ending.Recovers})
		}
	}
	s.serve(t, App{Limiter: limiter, Routes: routes})
	for i, ending := range endings {
		t.Run(ending.Name, func(t *testing.T) { s.oneEnding(t, received, limiter, ending, "GET", fmt.Sprintf("/end/e%d", i)) })
		if !s.adapter.RPC {
			t.Run("HEAD "+ending.Name, func(t *testing.T) { s.oneEnding(t, received, limiter, ending, "HEAD", fmt.Sprintf("/end/e%d", i)) })
		}
	}
}

func (s *site) oneEnding(t *testing.T, received *received, limiter *core.Limiter, ending Ending, method, path string) {
	failures, successes := s.left(t, limiter, "failures"), s.left(t, limiter, "successes")
	sent := ending.Sent
	if sent == 0 {
		sent = ending.Outcome
	}
	if reply := s.do(t, method, path); reply.Outcome != sent {
		t.Errorf("the caller got %d, want %d: %q", reply.Outcome, sent, reply.Body)
	}
	received.want(t, ending.Outcome)
	failed := received.failed(ending.Outcome)
	if failed {
		failures--
	}
	if !failed || ending.OtherOutcome != 0 && !received.failed(ending.OtherOutcome) {
		successes--
	}
	eventually(t, "the call that counts stays charged, and the other is given back", func() bool {
		return s.left(t, limiter, "failures") == failures && s.left(t, limiter, "successes") == successes
	})
}

// sentBeforePanic checks that Count is asked by both outcomes of a handler that panics after it has
// replied, as a reverse proxy does if its caller leaves in the middle of a reply. Otherwise callers
// could have the charge of a failed login given back. A framework that sends replies only when the
// handler has returned sends 500.
func sentBeforePanic(t *testing.T, s *site) {
	outcomes := make(chan int, 10)
	s.serve(t, App{Limiter: s.limiter(t), Routes: []Route{{
		Path:   "/shop/login",
		limits: limit(core.Rule{Seconds: 600, MaxCount: 9, Count: func(outcome int) bool { outcomes <- outcome; return false }}),
		Handle: func(h Handling) {
			h.Reply(401)
			panic("a handler's own fault")
		},
	}}})
	want := []int{s.failure()}
	if reply := s.get(t, "/shop/login"); reply.Outcome != want[0] {
		want = append(want, reply.Outcome)
	}
	for _, outcome := range want {
		eventually(t, "an outcome", func() bool { return len(outcomes) > 0 })
		if got := <-outcomes; got != outcome {
			t.Errorf("Count received %d, want each of %d", got, want)
		}
	}
}
