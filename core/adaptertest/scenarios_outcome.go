package adaptertest

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/accesslimit/accesslimit/core"
)

// outcomeScenarios are about rules that count by how a call ended.
var outcomeScenarios = []scenario{
	{name: "Count receives how a call ended", run: everyEnding},
	{name: "Count receives what was sent before a panic", run: sentBeforePanic},
	{name: "Count receives the outcome of a call without a route", run: noRouteEnding, httpOnly: true},
	{name: "Count receives the outcome of an inner refusal", run: refusedInside},
	{name: "only failures count", run: onlyFailures},
	{name: "only successes count", run: onlySuccesses},
	{name: "an uncounted charge is back before the next call", run: backBeforeNext},
	{name: "an uncounted charge is back before the next call, however slow Redis is", run: backHoweverSlow},
	{name: "an uncounted charge is back before the end of a long reply", run: backBeforeTheEnd},
	{name: "no more than MaxCount are tried at once", run: triedAtOnce},
	{name: "an uncounted charge is back when the caller left", run: backWhenLeft, needs: LeavingCallers},
	{name: "handlers of a counted call see the decision", run: exposedWhileCounted},
}

// received notes the outcomes that a rule's Count receives.
type received struct {
	rpc      bool
	outcomes chan int
}

func (s *site) received() *received { return &received{s.adapter.RPC, make(chan int, 100)} }

func (r *received) failed(outcome int) bool {
	if r.rpc {
		return outcome != 0
	}
	return outcome >= 400
}

// failure is a Count for which only failures count.
func (r *received) failure(outcome int) bool {
	r.outcomes <- outcome
	return r.failed(outcome)
}

// success is a Count for which only successes count.
func (r *received) success(outcome int) bool { return !r.failed(outcome) }

// want checks that this outcome, and no other, was received. If the reply began before its handler
// ended, that may take a moment.
func (r *received) want(t *testing.T, outcome int) {
	t.Helper()
	eventually(t, "an outcome", func() bool { return len(r.outcomes) > 0 })
	if got := <-r.outcomes; got != outcome {
		t.Fatalf("Count received %d, want %d", got, outcome)
	}
	if len(r.outcomes) > 0 {
		t.Fatalf("Count received %d, too", <-r.outcomes)
	}
}

// left returns how many permits of a rule the test's own address has left.
func (s *site) left(t *testing.T, limiter *core.Limiter, name string) int {
	t.Helper()
	d, err := limiter.MustCounter(name, core.Limit{Max: 1000, Window: 10 * time.Minute}).Peek(context.Background(), "ip:127.0.0.1")
	if err != nil {
		t.Fatal(err)
	}
	return d.Remaining
}

func noRouteEnding(t *testing.T, s *site) {
	received := s.received()
	s.serve(t, App{
		Limiter: s.limiter(t), Use: limit(core.Rule{Name: "all", Seconds: 600, MaxCount: 2, Count: received.failure}),
		Routes: []Route{{Path: "/shop/list"}},
	})
	for _, call := range []struct{ method, path string }{{"GET", "/no/such"}, {"DELETE", "/shop/list"}} {
		reply := s.do(t, call.method, call.path)
		if reply.Status != 404 && reply.Status != 405 {
			t.Fatalf("%s %s: status %d", call.method, call.path, reply.Status)
		}
		received.want(t, reply.Status)
	}
	s.want(t, 429, "/shop/list")
}

func refusedInside(t *testing.T, s *site) {
	received := s.received()
	s.serve(t, App{
		Limiter: s.limiter(t), Use: limit(core.Rule{Name: "outer", Seconds: 600, MaxCount: 2, Count: received.failure}),
		Routes: []Route{{Path: "/shop/list", limits: limit(core.Rule{Name: "inner", Seconds: 600, MaxCount: 1})}},
	})
	s.want(t, 200, "/shop/list")
	received.want(t, map[bool]int{false: 200, true: 0}[received.rpc])
	for range 2 {
		reply := s.want(t, 429, "/shop/list")
		received.want(t, reply.Outcome)
	}
	reply := s.want(t, 429, "/shop/list") // refused by outer, which did not count the first call
	wantEntries(t, reply, `"outer";r=0;t=`)
}

// counting serves /login/s200 and so on, which reply with that status, under one rule that counts
// by the outcome.
func (s *site) counting(t *testing.T, rule core.Rule) {
	t.Helper()
	rule.Name = "login"
	if (rule.Limit == core.Limit{}) {
		rule.Seconds = 600
	}
	var routes []Route
	for _, status := range []int{200, 401, 404, 500} {
		routes = append(routes, Route{
			Path: fmt.Sprintf("/login/s%d", status), limits: limit(rule), Handle: func(h Handling) { h.Reply(status) },
		})
	}
	s.serve(t, App{Limiter: s.limiter(t), Routes: routes})
}

func onlyFailures(t *testing.T, s *site) {
	s.counting(t, core.Rule{MaxCount: 2, Count: s.received().failure})
	for _, status := range []int{200, 401, 200, 200, 404} {
		s.want(t, status, fmt.Sprintf("/login/s%d", status))
	}
	s.want(t, 429, "/login/s200")
}

func onlySuccesses(t *testing.T, s *site) {
	s.counting(t, core.Rule{MaxCount: 1, Count: s.received().success})
	for _, status := range []int{401, 404, 500, 401, 200} {
		s.want(t, status, fmt.Sprintf("/login/s%d", status))
	}
	s.want(t, 429, "/login/s404")
}

// backBeforeNext checks that a caller who makes one call after the other is never refused because
// of calls that do not count.
func backBeforeNext(t *testing.T, s *site) {
	for _, a := range []core.Algorithm{core.SlidingWindow, core.SlidingLog, core.FixedWindow, core.CalendarWindow, core.TokenBucket} {
		s.counting(t, core.Rule{Limit: core.Limit{Max: 1, Window: 600 * time.Second, Algorithm: a}, Count: s.received().failure})
		client := s.adapter.Connect(t, s.dial)
		for i := range 30 {
			if reply := s.doWith(t, client, newCall("GET", "/login/s200")); reply.Status != 200 {
				t.Errorf("%v: success %d got %d: %s", a, i, reply.Status, reply.Body)
				break
			}
		}
		client.Close()
	}
}

func triedAtOnce(t *testing.T, s *site) {
	gate := newGate(t)
	s.serve(t, App{Limiter: s.limiter(t), Routes: []Route{{
		Path: "/shop/login", limits: limit(core.Rule{Seconds: 600, MaxCount: 3, Count: s.received().failure}),
		Handle: func(h Handling) { gate.hold(); h.Text("welcome") },
	}}})
	var tries []*held
	for range 3 {
		tries = append(tries, s.enter(t, gate, "/shop/login"))
	}
	s.want(t, 429, "/shop/login")
	s.want(t, 429, "/shop/login")
	tries[0].wantEnd(200)
	again := s.enter(t, gate, "/shop/login")
	s.want(t, 429, "/shop/login")
	for _, try := range []*held{tries[1], tries[2], again} {
		try.wantEnd(200)
	}
}

func backWhenLeft(t *testing.T, s *site) {
	gate, limiter := newGate(t), s.limiter(t)
	received := s.received()
	s.serve(t, App{Limiter: limiter, Routes: []Route{{
		Path:   "/shop/list",
		limits: limit(core.Rule{Name: "successes", Seconds: 600, MaxCount: 1000, Count: func(o int) bool { received.failure(o); return received.success(o) }}),
		Handle: func(h Handling) { gate.hold(); <-h.Context().Done(); h.Reply(500) },
	}}})
	call := s.enter(t, gate, "/shop/list")
	close(call.leave)
	if n := s.left(t, limiter, "successes"); n != 999 {
		t.Fatalf("%d are left while the handler runs, want 999", n)
	}
	call.abandon()
	received.want(t, s.failure())
	eventually(t, "the charge of the caller who left is given back", func() bool { return s.left(t, limiter, "successes") == 1000 })
}

// failure returns the outcome of Handling.Reply(500).
func (s *site) failure() int {
	if s.adapter.RPC {
		return 13
	}
	return 500
}

func exposedWhileCounted(t *testing.T, s *site) {
	limiter, received := s.limiter(t, func(o *core.Options) { o.Expose = true }), s.received()
	slots := core.Rule{Name: "slots", Limit: core.Limit{Max: 1, Window: 600 * time.Second, Algorithm: core.Concurrency}}
	s.serve(t, App{Limiter: limiter, Use: limit(slots), Routes: []Route{{
		Path: "/shop/list", limits: limit(core.Rule{Name: "counted", Seconds: 600, MaxCount: 1, Count: received.failure}),
		Handle: func(h Handling) {
			d, _ := core.DecisionFrom(h.Context())
			h.Text(d.Rule + " " + d.Limit.String())
		},
	}}})
	for range 3 {
		reply := s.want(t, 200, "/shop/list")
		if reply.Body != "counted 1/10m" {
			t.Errorf("the handler saw %q", reply.Body)
		}
		received.want(t, reply.Outcome)
	}
}
