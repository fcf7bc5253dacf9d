package core_test

import (
	"context"
	"errors"
	"testing"

	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/core/internal/algorithm"
	"github.com/accesslimit/accesslimit/internal/logtest"
)

var (
	open   = core.Rule{Name: "open", Seconds: 3600}
	closed = core.Rule{Name: "closed", Seconds: 3600, OnStoreError: core.FailClosed}
)

func TestAStoreThatFailsIsLoggedOnce(t *testing.T) {
	var log logtest.Log
	options := deadRedis(t)
	options.Logger = log.Logger()
	guard := newGuard(t, newLimiter(t, options), closed)
	for range 3 {
		wantStatus(t, guard, newView("GET", "/"), 503)
	}
	if log.Count("level=WARN", "rule=closed", "policy=fail_closed", "error=") != 1 || log.Count("does not answer") != 1 {
		t.Errorf("want one line with rule, policy and cause, got: %s", log.String())
	}
}

// A context that ends while the store is asked is an end of the caller's context, too.
func TestDirectCallsWhoseCallerLeaves(t *testing.T) {
	limiter := newLimiter(t, core.Options{})
	core.UseAnswers(limiter, algorithm.Verdict{Ended: context.Canceled})
	if d, err := limiter.MustCounter("n", core.PerHour(5)).Allow(background, "s"); !errors.Is(err, context.Canceled) || errors.Is(err, core.ErrStore) || d.Allowed {
		t.Errorf("%+v, %v", d, err)
	}
}
