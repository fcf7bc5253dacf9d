package core_test

import (
	"context"
	"testing"

	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/core/adapter"
)

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

// hold takes a slot, which must be free.
func hold(t testing.TB, limiter *core.Limiter, subject string, limit core.Limit) (release func()) {
	t.Helper()
	release, d, err := holdBy(limiter, background, "n", subject, limit)
	if err != nil || !d.Allowed {
		t.Fatalf("Hold: %+v, %v", d, err)
	}
	return release
}
