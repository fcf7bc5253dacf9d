package adaptertest

import (
	"bufio"
	"fmt"
	"net"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/internal/bounded"
)

// leftScenarios are about callers who leave before their call is answered, or pretend to.
var leftScenarios = []scenario{
	{name: "a success counts even if its caller has half closed the connection", run: halfClosed, needs: LeavingCallers, httpOnly: true},
	{name: "Count receives that the caller left", run: leftUnanswered, needs: LeavingCallers, httpOnly: true},
	{name: "Count receives the 200 that was flushed before the caller left", run: leftFlushed, needs: LeavingCallers, httpOnly: true},
}

// send sends a request on a connection of its own, and returns when its handler is held.
func (s *site) send(t *testing.T, g *gate, path string) (net.Conn, *held) {
	t.Helper()
	conn, err := s.dial(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	bounded.Cleanup(t, func() { _ = conn.Close() })
	_ = conn.SetDeadline(time.Now().Add(patience))
	fmt.Fprintf(conn, "GET %s HTTP/1.1\r\nHost: service.test\r\n\r\n", path)
	select {
	case leave := <-g.entered:
		return conn, &held{gate: g, leave: leave}
	case <-time.After(patience):
		t.Fatalf("GET %s did not reach its handler within %v", path, patience)
	}
	return nil, nil
}

// silently returns a handler that waits until its caller has left, and then writes nothing.
func silently(g *gate) func(Handling) {
	return func(h Handling) { g.hold(); <-h.Context().Done() }
}

// halfClosed makes a call whose client has closed its half of the connection, and so still gets the
// 200. Every rule that counts a 200, or callers who left, must charge it.
func halfClosed(t *testing.T, s *site) {
	gate, limiter := newGate(t), s.limiter(t)
	rule := func(name string, counts ...int) core.Rule {
		return core.Rule{Name: name, Seconds: 600, MaxCount: 1000, Count: func(status int) bool {
			return slices.Contains(counts, status)
		}}
	}
	s.serve(t, App{Limiter: limiter, Routes: []Route{{
		Path: "/shop/list", Handle: silently(gate),
		limits: limit(rule("successes", 200, 201), rule("failures", 401, 499), rule("both", 200, 499), rule("others", 401, 500)),
	}}})
	conn, call := s.send(t, gate, "/shop/list")
	_ = conn.(interface{ CloseWrite() error }).CloseWrite()
	close(call.leave)
	if reply, err := http.ReadResponse(bufio.NewReader(conn), nil); err != nil || reply.StatusCode != 200 {
		t.Fatalf("a client that closed its half of the connection got %v, %v", reply, err)
	}
	for name, left := range map[string]int{"successes": 999, "failures": 999, "both": 999, "others": 1000} {
		eventually(t, fmt.Sprintf("%d are left of %s", left, name), func() bool { return s.left(t, limiter, name) == left })
	}
}

// leftUnanswered checks that a call whose caller left before the answer counts under a rule that
// treats that as a failure.
func leftUnanswered(t *testing.T, s *site) {
	gate, received := newGate(t), s.received()
	s.serve(t, App{Limiter: s.limiter(t), Routes: []Route{{
		Path: "/shop/list", limits: limit(core.Rule{Name: "list", Seconds: 600, MaxCount: 1, Count: received.failure}), Handle: silently(gate),
	}}})
	call := s.enter(t, gate, "/shop/list")
	close(call.leave)
	call.abandon()
	eventually(t, "both outcomes", func() bool { return len(received.outcomes) == 2 })
	if sent, left := <-received.outcomes, <-received.outcomes; sent != 200 || left != 499 {
		t.Errorf("Count received %d and %d, want 200 and 499", sent, left)
	}
	s.want(t, 429, "/shop/list")
}

// leftFlushed is about a stream of events whose caller leaves before the first one.
func leftFlushed(t *testing.T, s *site) {
	gate, received := newGate(t), s.received()
	s.serve(t, App{Limiter: s.limiter(t), Routes: []Route{{
		Path: "/shop/list", limits: limit(core.Rule{Name: "list", Seconds: 600, MaxCount: 1, Count: received.failure}),
		Handle: func(h Handling) { h.Flush(); silently(gate)(h) },
	}}})
	conn, call := s.send(t, gate, "/shop/list")
	if reply, err := http.ReadResponse(bufio.NewReader(conn), nil); err != nil || reply.StatusCode != 200 {
		t.Fatalf("the flushed header is %v, %v", reply, err)
	}
	_ = conn.Close()
	close(call.leave)
	received.want(t, 200)
}
