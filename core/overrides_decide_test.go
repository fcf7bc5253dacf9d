package core_test

import (
	"strings"
	"testing"
	"time"

	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/internal/logtest"
)

// operator sets overrides of one rule, whose own limit is given.
type operator struct {
	testing.TB
	limiter *core.Limiter
	name    string
	own     core.Limit
}

func (o operator) put(subject, text string) {
	o.Helper()
	if err := core.PutOverride(o.limiter, o.name, subject, text); err != nil {
		o.Fatal(err)
	}
}

func (o operator) max(subject string, most int) {
	o.put(subject, core.StoredOverride(o.own, most, 0, false, false, time.Time{}))
}

func (o operator) lift(subject string) {
	o.put(subject, core.StoredOverride(o.own, 0, 0, true, false, time.Time{}))
}

func (o operator) block(subject string, until time.Time) {
	o.put(subject, core.StoredOverride(o.own, 0, 0, false, true, until))
}

func (o operator) remove(subject string) { o.put(subject, "") }

// A call that costs nothing is refused while Redis does not answer, if the rule says so: its subject
// may be blocked.
func TestFailClosedOfACallThatCostsNothing(t *testing.T) {
	options := deadRedis(t)
	options.Identify = whoSays
	limiter := newLimiter(t, options)
	rule := byUser("api")
	rule.Cost, rule.OnStoreError = cost(0), core.FailClosed
	if answer := newGuard(t, limiter, rule).Check(by("a")); answer.Refusal == nil || answer.Refusal.Decision.Reason != core.StoreFailClosed {
		t.Errorf("%+v", answer)
	}
}

// A plan that LimitFor computes must have the rule's span and algorithm, or the rule's own limit
// holds.
func TestComputedPlansOfARuleWithOverrides(t *testing.T) {
	var log logtest.Log
	limiter := newLimiter(t, core.Options{Identify: whoSays, Logger: log.Logger()})
	limits := map[string]core.Limit{"more": core.PerHour(3), "other": core.PerDay(9)}
	rule := byUser("api")
	rule.LimitFor = func(r core.Request) (core.Limit, error) {
		user, err := r.User()
		return limits[user], err
	}
	guard := newGuard(t, limiter, rule)
	wantServed(t, guard, by("more"), ok, 200, 200, 200, 429)
	wantServed(t, guard, by("other"), ok, 200, 200, 429)
	if log.Count("plan could not be found", "rule=api") == 0 {
		t.Error("nothing was logged")
	}
}

// A caller who is blocked is told so, for how long if the block ends, and of no limit.
func TestBlocked(t *testing.T) {
	limiter := newLimiter(t, core.Options{Identify: whoSays})
	guard, o := newGuard(t, limiter, byUser("api")), operator{t, limiter, "api", core.PerHour(2)}
	for until, message := range map[time.Time]string{{}: "Calls are refused.", time.Now().Add(time.Hour): "Calls are refused for another "} {
		o.block("user:a", until)
		refusal := wantStatus(t, guard, by("a"), 429).Refusal
		if d := refusal.Decision; d.Reason != core.Blocked || (d.RetryAfter > 0) == until.IsZero() || refusal.RetryAfter != d.RetryAfter || refusal.Code != 8 {
			t.Errorf("until %v: %+v", until, refusal)
		}
		if !strings.HasPrefix(refusal.Message, message) || len(refusal.Violated) > 0 {
			t.Errorf("the caller is told %q, %v", refusal.Message, refusal.Violated)
		}
	}
	o.block("user:a", time.Now().Add(-time.Second)) // it is over
	wantServed(t, guard, by("a"), ok, 200, 200, 429)
}

// An override that was made for another window counts as absent, and is reported.
func TestOverridesOfAnotherWindow(t *testing.T) {
	var log logtest.Log
	limiter := newLimiter(t, core.Options{Identify: whoSays, Logger: log.Logger()})
	guard := newGuard(t, limiter, byUser("api"))
	operator{t, limiter, "api", core.PerDay(2)}.max("user:a", 9)
	wantServed(t, guard, by("a"), ok, 200, 200, 429)
	if log.Count("an override is ignored", "rule=api", "why=") != 1 {
		t.Errorf("the log is %s", log.String())
	}
}
