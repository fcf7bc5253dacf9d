package core_test

import (
	"context"
	"net/http"
	"testing"

	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/core/adapter"
)

// status returns the status that the caller gets: 200 stands for the handler.
func status(answer core.Answer) int {
	if answer.Refusal == nil {
		return http.StatusOK
	}
	return answer.Refusal.Status
}

// wantStatus checks one call.
func wantStatus(t testing.TB, guard *core.Guard, v adapter.View, want int) core.Answer {
	t.Helper()
	answer := guard.Check(v)
	if got := status(answer); got != want {
		t.Fatalf("%s %s by %v: status %d, want %d", v.Method(), v.Path(), v.RemoteAddr(), got, want)
	}
	return answer
}

// serve makes one call of a guard whose handler, if it runs, ends with this status. It returns the
// status that the caller gets.
func serve(guard *core.Guard, v adapter.View, ends int) int {
	answer := guard.Check(v)
	if answer.Refusal != nil {
		return answer.Refusal.Status
	}
	answer.Run(func() int { return ends })
	return ends
}

// wantServed checks the statuses that the callers of several calls get.
func wantServed(t testing.TB, guard *core.Guard, v adapter.View, ends int, want ...int) {
	t.Helper()
	for i, status := range want {
		if got := serve(guard, v, ends); got != status {
			t.Fatalf("call %d that would end with %d: status %d, want %d", i+1, ends, got, status)
		}
	}
}

// serveInside runs inside while a call is in flight.
func serveInside(t *testing.T, guard *core.Guard, inside func()) {
	t.Helper()
	wantStatus(t, guard, newView("GET", "/"), 200).Run(func() int {
		inside()
		return 200
	})
}

// wantLeft checks how many permits a counter of the limiter has left.
func wantLeft(t testing.TB, limiter *core.Limiter, name, subject string, limit core.Limit, want int) {
	t.Helper()
	d, err := peek(limiter, context.Background(), name, subject, limit)
	if err != nil {
		t.Fatalf("Peek(%q, %q): %v", name, subject, err)
	}
	if d.Remaining != want {
		t.Errorf("%q of %q: %d left, want %d", name, subject, d.Remaining, want)
	}
}

// wantPanic checks that a panic reaches the caller of do.
func wantPanic(t testing.TB, what any, do func()) {
	t.Helper()
	defer func() {
		t.Helper()
		if got := recover(); got != what {
			t.Errorf("recovered %v, want %v", got, what)
		}
	}()
	do()
}

// panics reports whether a function panics.
func panics(do func()) (did bool) {
	defer func() { did = recover() != nil }()
	do()
	return false
}

const ok = http.StatusOK
