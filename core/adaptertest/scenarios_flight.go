package adaptertest

import (
	"context"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/accesslimit/accesslimit/core"
)

// flightScenarios are about rules that count the calls in flight.
var flightScenarios = []scenario{
	{name: "no more in flight than slots", run: noMoreInFlight},
	{name: "a panic frees the slot", run: panicFrees},
	{name: "a panic in a rule's function frees the slot and the uncounted charge", run: panicInRuleFrees},
	{name: "a caller who leaves frees the slot when the handler ends", run: leavingFrees},
	{name: "a handler that ends because its caller left frees the slot", run: leavingEndsAndFrees, needs: LeavingCallers},
	{name: "a slot is one of several limits", run: slotAmongLimits},
}

// busy serves routes that share this many slots, with handlers that the test holds.
func (s *site) busy(t *testing.T, slots int) *gate {
	t.Helper()
	gate := newGate(t)
	limits := limit(core.Rule{Name: "busy", Limit: core.Limit{Max: slots, Window: 600 * time.Second, Algorithm: core.Concurrency}})
	s.serve(t, App{Limiter: s.limiter(t), Routes: []Route{
		{Path: "/shop/export", limits: limits, Handle: func(h Handling) { gate.hold(); h.Text("done") }},
		{Path: "/shop/panic", limits: limits, Handle: func(Handling) { gate.hold(); panic("a handler's own fault") }},
		{Path: "/shop/patient", limits: limits, Handle: func(h Handling) { gate.hold(); <-h.Context().Done(); h.Reply(500) }},
		{Path: "/shop/quick", limits: limits},
	}})
	return gate
}

func noMoreInFlight(t *testing.T, s *site) {
	gate := s.busy(t, 2)
	reply := s.want(t, 200, "/shop/quick")
	wantHeader(t, reply, "Ratelimit", `"busy";r=1`) // without t=, because nobody knows when a slot comes back
	wantHeader(t, reply, "Ratelimit-Policy", `"busy";q=2;qu="concurrent-requests"`)
	one, two := s.enter(t, gate, "/shop/export"), s.enter(t, gate, "/shop/export")
	for range 2 {
		reply = s.want(t, 429, "/shop/quick")
		wantEntries(t, reply, `"busy";r=0;t=`)
		_, wait, _ := strings.Cut(reply.Header.Get("Ratelimit"), ";t=")
		if seconds, err := strconv.Atoi(wait); err != nil || seconds < 1 || seconds > 600 {
			t.Errorf("t=%s, want at most the 600 s after which a dead holder's slot is free", wait)
		}
		wantHeader(t, reply, "Ratelimit-Policy", `"busy";q=2;qu="concurrent-requests"`)
	}
	one.wantEnd(200)
	s.want(t, 200, "/shop/quick")
	again := s.enter(t, gate, "/shop/export")
	s.want(t, 429, "/shop/quick")
	two.wantEnd(200)
	again.wantEnd(200)
	for range 5 { // each gives back its slot before the next
		s.want(t, 200, "/shop/quick")
	}
}

func panicFrees(t *testing.T, s *site) {
	gate := s.busy(t, 1)
	for range 3 {
		call := s.enter(t, gate, "/shop/panic")
		s.want(t, 429, "/shop/quick")
		call.wantEnd(500)
	}
	s.want(t, 200, "/shop/quick")
}

// panicInRuleFrees makes each function that a service can set panic, in the outer and in the inner
// of two middlewares. The next call needs the slots and the permits of the call that panicked.
func panicInRuleFrees(t *testing.T, s *site) {
	var fault atomic.Value
	fault.Store("")
	here := func(in string) {
		if fault.CompareAndSwap(in, "") {
			panic("the service's own fault in " + in)
		}
	}
	limiter := s.limiter(t, func(o *core.Options) {
		o.Expose = true
		o.OnDecision = func(_ context.Context, e core.Event) {
			d := e.Decision

			middleware, _, _ := strings.Cut(d.Rule, " ")
			here(middleware + ": OnDecision")
		}
	})
	rules := func(name string) []core.Rule {
		return []core.Rule{
			{Name: name, Limit: core.Limit{Max: 1, Window: 600 * time.Second, Algorithm: core.Concurrency}},
			{
				Name: name + " free", Seconds: 600, MaxCount: 9, Count: func(int) bool { here(name + ": Count"); return false },
				Key:  func(core.Request) (string, error) { here(name + ": Key"); return "s", nil },
				Cost: func(core.Request) int { here(name + ": Cost"); return 1 },
			},
			{Name: name + " last", Seconds: 600, MaxCount: 1, Count: func(int) bool { return false }},
		}
	}
	s.serve(t, App{Limiter: limiter, Use: limit(rules("outer")...), Routes: []Route{
		{Path: "/shop/list", limits: limit(rules("inner")...), Handle: func(h Handling) { here("handler"); h.Text("ok") }},
	}})
	for _, in := range []string{
		"outer: OnDecision", "outer: Key", "outer: Cost", "outer: Count", "inner: OnDecision", "inner: Key", "inner: Cost", "inner: Count", "handler",
	} {
		fault.Store(in)
		if reply := s.get(t, "/shop/list"); reply.Status == 429 || fault.Load() != "" {
			t.Errorf("%s: status %d, and the fault is %q", in, reply.Status, fault.Load())
		}
		s.want(t, 200, "/shop/list")
	}
}

func leavingFrees(t *testing.T, s *site) {
	gate := s.busy(t, 1)
	call := s.enter(t, gate, "/shop/export")
	call.abandon()
	s.want(t, 429, "/shop/quick") // the handler is still running
	close(call.leave)
	eventually(t, "a slot", func() bool { return s.get(t, "/shop/quick").Status == 200 })
}

func leavingEndsAndFrees(t *testing.T, s *site) {
	gate := s.busy(t, 1)
	call := s.enter(t, gate, "/shop/patient")
	close(call.leave)
	s.want(t, 429, "/shop/quick")
	call.abandon()
	eventually(t, "a slot", func() bool { return s.get(t, "/shop/quick").Status == 200 })
}

// slotAmongLimits checks that a call keeps no slot if another limit of its rule refuses it, and
// that giving back a slot leaves the charge of a window in place.
func slotAmongLimits(t *testing.T, s *site) {
	rule := core.Rule{Name: "export", Seconds: 600, MaxCount: 2, Also: []core.Limit{core.InFlight(1)}}
	gate := newGate(t)
	s.serve(t, App{Limiter: s.limiter(t), Routes: []Route{
		{Path: "/shop/export", limits: limit(rule), Handle: func(h Handling) { gate.hold(); h.Text("done") }},
		{Path: "/shop/quick", limits: limit(rule)},
	}})
	call := s.enter(t, gate, "/shop/export")
	reply := s.want(t, 429, "/shop/quick")
	wantEntries(t, reply, `"export";r=1;t=`, `"export-at-once";r=0;t=`)
	call.wantEnd(200)
	reply = s.want(t, 200, "/shop/quick")
	wantEntries(t, reply, `"export";r=0;t=`, `"export-at-once";r=0`)
	for range 3 {
		reply = s.want(t, 429, "/shop/quick")
		wantEntries(t, reply, `"export";r=0;t=`, `"export-at-once";r=1`)
	}
}
