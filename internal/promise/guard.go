package promise

import (
	"context"
	"net/http"
	"sync"
	"testing"

	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/internal/limitertest"
)

// caller is the key of the value by which a call is counted.
const caller = "caller"

// weight is the key of the value that says what a call costs.
const weight = "weight"

// callBy returns a call by this caller, to a route that has only the rules under test.
func callBy(ctx context.Context, who string) *limitertest.View {
	v := limitertest.NewView("GET", "/shop/list").In(ctx)
	v.Values[caller], v.Values[weight] = who, 1
	return v
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

// together runs a function in several goroutines that begin at once.
var together = limitertest.Together
