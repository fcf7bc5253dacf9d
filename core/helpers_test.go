package core_test

import (
	"context"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/core/adapter"
	"github.com/accesslimit/accesslimit/core/operate"
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

func by(user string) *fakeView { return newView("GET", "/").As(user) }

const me = "ip:192.0.2.1" // who calls in newView

// peek returns a Decision about what is left of a limit by any algorithm.
func peek(limiter *core.Limiter, ctx context.Context, name, subject string, limit core.Limit) (core.Decision, error) {
	if limit.Algorithm == core.Concurrency {
		return limiter.MustSlots(name, limit.Max).LostAfter(limit.Window).Peek(ctx, subject)
	}
	return limiter.MustCounter(name, limit).Peek(ctx, subject)
}

// resetOf forgets what a subject used of a limit by any algorithm.
func resetOf(limiter *core.Limiter, ctx context.Context, name, subject string, limit core.Limit) (changed bool, err error) {
	if limit.Algorithm == core.Concurrency {
		return limiter.MustSlots(name, limit.Max).LostAfter(limit.Window).Reset(ctx, subject)
	}
	return limiter.MustCounter(name, limit).Reset(ctx, subject)
}

// holdBy takes a slot of a limit with any window.
func holdBy(limiter *core.Limiter, ctx context.Context, name, subject string, limit core.Limit) (release func(), d core.Decision, err error) {
	return limiter.MustSlots(name, limit.Max).LostAfter(limit.Window).Hold(ctx, subject)
}

// checkRule decides by a rule as a handler does.
func checkRule(limiter *core.Limiter, v adapter.View, rule core.Rule, subject string) core.Answer {
	return limiter.MustCheck(rule).Allow(v, subject)
}

// charge takes n permits, which must be there.
func charge(t testing.TB, limiter *core.Limiter, name, subject string, limit core.Limit, n int) core.Decision {
	t.Helper()
	d, err := limiter.MustCounter(name, limit).AllowN(background, subject, n)
	if err != nil || !d.Allowed {
		t.Fatalf("AllowN(%q, %q, %v, %d): %+v, %v", name, subject, limit, n, d, err)
	}
	return d
}

func refund(t testing.TB, limiter *core.Limiter, d core.Decision, n int) {
	t.Helper()
	if err := limiter.Refund(background, d, n); err != nil {
		t.Fatalf("Refund of %d: %v", n, err)
	}
}

func unban(t *testing.T, limiter *core.Limiter, rule string) {
	t.Helper()
	if changed, err := operate.New(limiter).Unban(background, rule, me); !changed || err != nil {
		t.Errorf("%t, %v", changed, err)
	}
}

func cost(n int) func(core.Request) int { return func(core.Request) int { return n } }

func key(subject string) core.KeyFunc {
	return func(core.Request) (string, error) { return subject, nil }
}

// planOf returns a Plan that gives every caller the same plan.
func planOf(name string) func(core.Request) (string, error) {
	return func(core.Request) (string, error) { return name, nil }
}

// is returns a Count for calls that end with one of these outcomes.
func is(outcomes ...int) func(int) bool {
	return func(status int) bool {
		for _, outcome := range outcomes {
			if status == outcome {
				return true
			}
		}
		return false
	}
}

// change returns a copy of a rule with a change.
func change(rule core.Rule, do func(*core.Rule)) core.Rule {
	do(&rule)
	return rule
}

func named(name string, limit core.Limit) core.Rule { return core.Rule{Name: name, Limit: limit} }

// atOnce returns a rule of so many calls in flight for each caller, whose slots count for a minute.
func atOnce(n int) core.Rule {
	return core.Rule{Name: "n", Limit: core.Limit{Max: n, Window: 60 * time.Second, Algorithm: core.Concurrency}}
}

// atOnceAs is atOnce under another name.
func atOnceAs(name string, n int) core.Rule {
	rule := atOnce(n)
	rule.Name = name
	return rule
}

// byUser returns a rule of two calls an hour for each user.
func byUser(name string) core.Rule {
	return core.Rule{Name: name, Limit: core.PerHour(2), Key: core.ByUser}
}

// decisions notes what OnDecision receives.
type decisions struct {
	mu    sync.Mutex
	heard []core.Decision
}

func (d *decisions) note(_ context.Context, e core.Event) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.heard = append(d.heard, e.Decision)
}

// last returns the newest of exactly n decisions.
func (d *decisions) last(t testing.TB, n int) core.Decision {
	t.Helper()
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.heard) != n {
		t.Fatalf("OnDecision was called %d times, want %d", len(d.heard), n)
	}
	return d.heard[n-1]
}
