package core_test

import (
	"context"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/core/adapter"
	"github.com/accesslimit/accesslimit/internal/limitertest"
)

// fakeView is a call as an adapter shows it. It follows View strictly: a header is found under its
// canonical name only.
type fakeView struct {
	ctx      context.Context
	method   string
	path     string
	route    string
	peer     netip.Addr
	request  http.Header
	values   map[any]any
	query    url.Values
	params   map[string]string
	size     int64
	response http.Header
}

// newView returns a call from 192.0.2.1, whose path is also its route.
func newView(method, route string) *fakeView {
	return &fakeView{
		ctx: context.Background(), method: method, path: route, route: route, peer: netip.MustParseAddr("192.0.2.1"),
		request: http.Header{}, values: map[any]any{}, size: -1, response: http.Header{},
	}
}

func (v *fakeView) Context() context.Context             { return v.ctx }
func (v *fakeView) Method() string                       { return v.method }
func (v *fakeView) Path() string                         { return v.path }
func (v *fakeView) Route() string                        { return v.route }
func (v *fakeView) RemoteAddr() netip.Addr               { return v.peer }
func (v *fakeView) Header(name string) []string          { return v.request[name] }
func (v *fakeView) Value(key any) any                    { return v.values[key] }
func (v *fakeView) Size() int64                          { return v.size }
func (v *fakeView) ResponseHeader() adapter.HeaderWriter { return v.response }
func (v *fakeView) Host() string                         { return v.request.Get("Host") }
func (v *fakeView) Query(name string) string             { return v.query.Get(name) }
func (v *fakeView) Param(name string) string             { return v.params[name] }

func (v *fakeView) Cookie(name string) string {
	cookie, err := (&http.Request{Header: v.request}).Cookie(name)
	if err != nil {
		return ""
	}
	return cookie.Value
}

// from returns the same call by another peer; "" is one without an address, as over a unix socket.
func (v *fakeView) from(peer string) *fakeView {
	v.peer, _ = netip.ParseAddr(peer)
	return v
}

// with returns the same call with one more header line.
func (v *fakeView) with(name, value string) *fakeView {
	v.request.Add(name, value)
	return v
}

// asking returns the same call with a query.
func (v *fakeView) asking(query string) *fakeView {
	v.query, _ = url.ParseQuery(query)
	return v
}

// matching returns the same call on a route with a wildcard.
func (v *fakeView) matching(name, value string) *fakeView {
	v.params = map[string]string{name: value}
	return v
}

// as returns the same call by a user, for limiters whose Identify is whoSays.
func (v *fakeView) as(user string) *fakeView {
	v.values["user"] = user
	return v
}

// whoSays identifies callers by the user that fakeView.as set.
var whoSays = core.ContextValue("user")

func newGuard(t testing.TB, limiter *core.Limiter, rules ...core.Rule) *core.Guard {
	t.Helper()
	guard, err := limiter.Guard(rules...)
	if err != nil {
		t.Fatalf("Guard: %v", err)
	}
	return guard
}

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

// errorOf returns the error of a call that also reports whether it changed anything.
func errorOf(_ bool, err error) error { return err }

// holdBy takes a slot of a limit with any window.
func holdBy(limiter *core.Limiter, ctx context.Context, name, subject string, limit core.Limit) (release func(), d core.Decision, err error) {
	return limiter.MustSlots(name, limit.Max).LostAfter(limit.Window).Hold(ctx, subject)
}

// checkRule decides by a rule as a handler does.
func checkRule(limiter *core.Limiter, v adapter.View, rule core.Rule, subject string) core.Answer {
	return limiter.MustCheck(rule).Allow(v, subject)
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

// These are for the tests of the packages below core too.
const (
	patient     = limitertest.Patient
	mostPermits = limitertest.MostPermits
)

var (
	newLimiter        = limitertest.New
	onEveryDeployment = limitertest.OnEveryDeployment
	deadRedis         = limitertest.DeadRedis
	wantRuleError     = limitertest.WantRuleError
	isRefused         = limitertest.IsRefused
	eventually        = limitertest.Eventually
	noMax             = limitertest.NoMax
	overridable       = limitertest.Overridable
)

// onBothEngines runs a test in process and on a real Redis that no other test uses.
func onBothEngines(t *testing.T, test func(t *testing.T, options core.Options, source core.Source)) {
	limitertest.OnBothEngines(t, func(t *testing.T, options core.Options) {
		if options.Redis == nil {
			test(t, options, core.FromMemory)
		} else {
			test(t, options, core.FromRedis)
		}
	})
}

// keysBesideMark returns the keys of a server, except that of its mark.
func keysBesideMark(server redis.Cmdable) []string {
	return slices.DeleteFunc(server.Keys(background, "*").Val(), func(key string) bool { return strings.HasSuffix(key, ":{%mark0}:mk1") })
}

// counterKeys returns the keys of a server, except those of the audit and of lists, which stay.
func counterKeys(server redis.Cmdable) []string {
	return slices.DeleteFunc(server.Keys(background, "*").Val(), func(key string) bool { return strings.Contains(key, ":{%") })
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
