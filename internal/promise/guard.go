package promise

import (
	"context"
	"net/http"
	"net/netip"
	"sync"
	"testing"

	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/core/adapter"
)

// call is a call, as an adapter would show it, to a route that has only the rules under test.
type call struct {
	ctx    context.Context
	values map[any]any
	answer http.Header
}

func (v *call) Context() context.Context             { return v.ctx }
func (v *call) Method() string                       { return http.MethodGet }
func (v *call) Path() string                         { return "/shop/list" }
func (v *call) Route() string                        { return "/shop/list" }
func (v *call) RemoteAddr() netip.Addr               { return netip.MustParseAddr("192.0.2.1") }
func (v *call) Host() string                         { return "shop.example" }
func (v *call) Header(string) []string               { return nil }
func (v *call) Query(string) string                  { return "" }
func (v *call) Param(string) string                  { return "" }
func (v *call) Cookie(string) string                 { return "" }
func (v *call) Value(key any) any                    { return v.values[key] }
func (v *call) Size() int64                          { return -1 }
func (v *call) ResponseHeader() adapter.HeaderWriter { return v.answer }

// caller is the key of the value by which a call is counted.
const caller = "caller"

// weight is the key of the value that says what a call costs.
const weight = "weight"

// callBy returns a call by this caller.
func callBy(ctx context.Context, who string) *call {
	return &call{ctx: ctx, values: map[any]any{caller: who, weight: 1}, answer: make(http.Header)}
}

// byCaller counts by the caller.
var byCaller = core.ByValue(caller)

func weigh(r core.Request) int { return r.Value(weight).(int) }

// subjectOf returns the subject that byCaller returns for a caller.
func subjectOf(who string) string { return "value:" + who }

// watchedGuard is a guard that remembers its last decision.
type watchedGuard struct {
	*core.Guard
	limiter *core.Limiter

	mu   sync.Mutex
	last core.Decision
}

// watchGuard returns a guard with these rules, on a limiter of its own with these options.
func watchGuard(t testing.TB, options core.Options, rules ...core.Rule) *watchedGuard {
	t.Helper()
	d := new(watchedGuard)
	options.OnDecision = func(_ context.Context, e core.Event) {
		decision := e.Decision

		d.mu.Lock()
		defer d.mu.Unlock()
		d.last = decision
	}
	d.limiter = newLimiter(t, options)
	d.Guard = d.limiter.MustGuard(rules...)
	return d
}

// status returns the status that the caller gets; 200 stands for the handler's.
func status(answer core.Answer) int {
	if answer.Refusal == nil {
		return http.StatusOK
	}
	return answer.Refusal.Status
}

// ruleOf returns a rule with this limit.
func ruleOf(name string, l core.Limit) core.Rule {
	return core.Rule{Name: name, Limit: l, Key: byCaller}
}
