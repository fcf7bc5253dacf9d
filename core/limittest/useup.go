package limittest

import (
	"cmp"
	"testing"
	"time"

	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/core/internal/algorithm"
	"github.com/accesslimit/accesslimit/internal/bounded"
)

// UseUp uses up what a subject has left of a rule's own limit, so that its next call is refused, as
// in a service that is under load. The subject is what the rule's Key returns: "user:alice", or
// "ip:192.0.2.1" (see [core.Limiter.IPSubject]). Slots of [core.Concurrency] are taken until the test ends.
//
// The rule needs a Name: the counters of a rule without one are named after its routes. For a
// caller who has a plan, pass a rule whose Limit is that of the plan.
func UseUp(t testing.TB, limiter *core.Limiter, rule core.Rule, subject string) {
	t.Helper()
	limit := rule.Limit
	if limit == (core.Limit{}) {
		limit = core.Limit{Max: cmp.Or(rule.MaxCount, 5), Window: time.Duration(rule.Seconds) * time.Second}
	}
	if rule.Name == "" {
		t.Fatal("limittest: UseUp: the rule needs a Name")
	}
	var err error
	if algorithm.Kind(limit.Algorithm).OfLimit().Slots {
		err = useUpSlots(t, limiter, rule.Name, limit, subject)
	} else {
		err = useUpCounter(t, limiter, rule.Name, limit, subject)
	}
	if err != nil {
		t.Fatalf("limittest: UseUp: %v", err)
	}
}

func useUpCounter(t testing.TB, limiter *core.Limiter, name string, limit core.Limit, subject string) error {
	counter, err := limiter.Counter(name, limit)
	if err != nil {
		return err
	}
	d, err := counter.Peek(t.Context(), subject)
	if err != nil {
		return err
	}
	_, err = counter.AllowN(t.Context(), subject, d.Remaining)
	return err
}

func useUpSlots(t testing.TB, limiter *core.Limiter, name string, limit core.Limit, subject string) error {
	slots, err := limiter.Slots(name, limit.Max)
	if err != nil {
		return err
	}
	slots = slots.LostAfter(limit.Window)
	for {
		release, d, err := slots.Hold(t.Context(), subject)
		if err != nil || !d.Allowed {
			return err
		}
		bounded.Cleanup(t, release)
	}
}
