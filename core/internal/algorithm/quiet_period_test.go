package algorithm_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/core/internal/algorithm"
	"github.com/accesslimit/accesslimit/internal/limitertest"
	"github.com/accesslimit/accesslimit/internal/redistest"
)

// An algorithm that defines only what it must counts in both engines, along the whole path from a
// handle to a script. The defaults of everything else are safe: a refusal is not remembered, a
// refund gives nothing back, and leases, shares, turns, notes and slots are errors.
func TestAMadeUpAlgorithmIsSafe(t *testing.T) {
	limit := core.Limit{Max: 3, Window: time.Hour, Algorithm: core.Algorithm(algorithm.QuietPeriod)}
	for name, options := range map[string]core.Options{
		"process": {}, "Redis": {Redis: redistest.Start(t).Client(t), Timeout: 10 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			limiter := limitertest.New(t, options)
			wantCounted(t, limiter, limit)
			wantNothingElse(t, limiter, limit)
		})
	}
}

func wantCounted(t *testing.T, limiter *core.Limiter, limit core.Limit) {
	t.Helper()
	ctx := context.Background()
	counter := limiter.MustCounter("quiet", limit, core.PerHour(100))
	alone := limiter.MustCounter("alone", limit)
	for n := range 5 {
		d, err := counter.Allow(ctx, "user:a")
		if err != nil || d.Allowed != (n < 3) || d.Remaining != max(0, 2-n) || d.Source == core.FromDenyCache {
			t.Fatalf("call %d with another limit: %+v, %v", n, d, err)
		}
		d, err = alone.Allow(ctx, "user:a")
		if err != nil || d.Allowed != (n < 3) || d.Remaining != max(0, 2-n) || d.Source == core.FromDenyCache {
			t.Fatalf("call %d alone: %+v, %v", n, d, err)
		}
		if !d.Allowed {
			continue
		}
		if err := limiter.Refund(ctx, d, 1); err != nil {
			t.Fatal(err)
		}
		if after, err := alone.Peek(ctx, "user:a"); err != nil || after.Remaining != d.Remaining {
			t.Fatalf("after a refund: %+v, %v", after, err)
		}
	}
	if changed, err := alone.Reset(ctx, "user:a"); err != nil || !changed {
		t.Errorf("reset: %v, %v", changed, err)
	}
	if d, err := alone.AllowN(ctx, "user:a", 3); err != nil || !d.Allowed || d.Remaining != 0 {
		t.Errorf("after the reset: %+v, %v", d, err)
	}
}

func wantNothingElse(t *testing.T, limiter *core.Limiter, limit core.Limit) {
	t.Helper()
	errs := map[string]error{}
	_, errs["a pacer"] = limiter.Pacer("quiet", limit)
	_, errs["a log"] = limiter.Log("quiet", limit)
	burst, day, many := limit, limit, limit
	burst.Burst, many.Max = 2, algorithm.MaxEntries+1
	day.Calendar, day.Window = core.PerCalendarDay(3, "UTC").Calendar, 0
	_, errs["a burst"] = limiter.Counter("quiet", burst)
	_, errs["a calendar"] = limiter.Counter("quiet", day)
	_, errs["a Max of more than it promises"] = limiter.Counter("quiet", many)
	_, errs["a lease"] = limiter.Guard(core.Rule{Name: "lease", Limit: limit, Lease: 2})
	_, errs["a share"] = limiter.Guard(core.Rule{Name: "share", Limit: limit, OnStoreError: core.CountLocally(0.5)})
	for what, err := range errs {
		if wrong := (*core.RuleError)(nil); !errors.As(err, &wrong) {
			t.Errorf("%s: %v, want a RuleError", what, err)
		}
	}
	if parsed, err := core.ParseLimit(limit.String()); err != nil || parsed != limit {
		t.Errorf("%q is read as %v, %v", limit, parsed, err)
	}
}
