package promise

import (
	"context"
	"net/http"
	"net/netip"
	"sync"
	"testing"

	"github.com/accesslimit/accesslimit/core"
)

// visit is a call as an adapter would show it, of a route that has no rules but those under test.
type visit struct {
	ctx    context.Context
	values map[any]any
	answer http.Header
}

func (v *visit) Context() context.Context          { return v.ctx }
func (v *visit) Method() string                    { return http.MethodGet }
func (v *visit) Path() string                      { return "/shop/list" }
func (v *visit) Route() string                     { return "/shop/list" }
func (v *visit) RemoteAddr() netip.Addr            { return netip.MustParseAddr("192.0.2.1") }
func (v *visit) Host() string                      { return "shop.example" }
func (v *visit) Header(string) []string            { return nil }
func (v *visit) Query(string) string               { return "" }
func (v *visit) Param(string) string               { return "" }
func (v *visit) Value(key any) any                 { return v.values[key] }
func (v *visit) Size() int64                       { return -1 }
func (v *visit) ResponseHeader() core.HeaderWriter { return v.answer }

// guest is the value by which a visit's rules may count it.
const guest = "guest"

// weight is the value that says what a visit costs.
const weight = "weight"

// visitBy is a call by somebody.
func visitBy(ctx context.Context, who string) *visit {
	return &visit{ctx: ctx, values: map[any]any{guest: who, weight: 1}, answer: make(http.Header)}
}

// byGuest counts by who visits, and weigh by what they say that it costs.
var byGuest = core.ByValue(guest)

func weigh(r core.Request) int { return r.Value(weight).(int) }

// subjectOf is what byGuest makes of a guest.
func subjectOf(who string) string { return "value:" + who }

// doorman is a guard that remembers what it decided last.
type doorman struct {
	*core.Guard
	limiter *core.Limiter

	mu   sync.Mutex
	last core.Decision
}

// newDoorman puts a guard with these rules on a limiter of its own with these options.
func newDoorman(t testing.TB, options core.Options, rules ...core.Rule) *doorman {
	t.Helper()
	d := new(doorman)
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

// status is what a visitor gets: 200 stands for the handler.
func status(answer core.Answer) int {
	if answer.Refusal == nil {
		return http.StatusOK
	}
	return answer.Refusal.Status
}

// ruleOf is a rule that counts as a limit does.
func ruleOf(name string, l core.Limit) core.Rule {
	return core.Rule{Name: name, Limit: l, Key: byGuest}
}
