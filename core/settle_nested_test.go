package core_test

import (
	"context"
	"errors"
	"testing"

	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/internal/redistest"
)

// viewIn returns a call with a context.
func viewIn(ctx context.Context) *fakeView {
	v := newView("GET", "/")
	v.ctx = ctx
	return v
}

// A rule that a Check has not charged is not looked for in the middleware around it, whose rule of the
// same name was charged for something else.
func TestSettleOfACheckThatChargedNothing(t *testing.T) {
	limiter, hour := newLimiter(t, core.Options{}), core.PerHour(100)
	guard, check := newGuard(t, limiter, estimating("tokens", hour, 5)), limiter.MustCheck(estimating("tokens", hour, 1))
	err := handled(t, guard, func(outer context.Context) error {
		ctx, err := check.WithEstimates(outer, map[string]int{"tokens": 96})
		if err != nil {
			t.Fatal(err)
		}
		wantRuleError(t, core.Settle(ctx, "tokens", 50), "", "rule", "tokens") // not asked yet
		if got := status(check.Allow(viewIn(ctx), me)); got != 429 {
			t.Errorf("status %d, want 429", got)
		}
		wantRuleError(t, core.Settle(ctx, "tokens", 50), "", "rule", "tokens")
		wantLeft(t, limiter, "tokens", me, hour, 95)
		return core.Settle(outer, "tokens", 7)
	})
	if err != nil {
		t.Error(err)
	}
	wantLeft(t, limiter, "tokens", me, hour, 93)
}

// The estimates of one check are not those of another one whose rule has the same name, and each is
// settled in its own context.
func TestEstimatesOfTwoChecksWithOneName(t *testing.T) {
	limiter, hour := newLimiter(t, core.Options{}), core.PerHour(100)
	first, second := limiter.MustCheck(estimating("tokens", hour, 1)), limiter.MustCheck(estimating("tokens", hour, 2))
	ofFirst, err := first.WithEstimates(background, map[string]int{"tokens": 10})
	if err != nil {
		t.Fatal(err)
	}
	ofSecond, err := second.WithEstimates(ofFirst, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, ask := range []struct {
		check *core.Check
		left  int
	}{{second, 98}, {first, 88}} {
		if got := status(ask.check.Allow(viewIn(ofSecond), me)); got != 200 {
			t.Fatalf("status %d", got)
		}
		wantLeft(t, limiter, "tokens", me, hour, ask.left)
	}
	if err := errors.Join(core.Settle(ofSecond, "tokens", 5), core.Settle(ofFirst, "tokens", 20)); err != nil {
		t.Error(err)
	}
	wantLeft(t, limiter, "tokens", me, hour, 75)
}

// reused is a context that a framework uses again for its next call.
type reused struct{ context.Context }

// Settling in the context of a call that has ended changes nothing of the next call, whose context the
// framework has made of the same memory.
func TestSettleInAContextThatIsUsedAgain(t *testing.T) {
	limiter, hour := newLimiter(t, core.Options{}), core.PerHour(100)
	outer, inner := newGuard(t, limiter, estimating("outer", hour, 5)), newGuard(t, limiter, estimating("inner", hour, 7))
	shared, late := &reused{background}, context.Context(nil)
	_ = handled(t, outer, func(ctx context.Context) error {
		shared.Context = ctx
		answer := wantStatus(t, inner, viewIn(shared), ok)
		late = answer.Context
		answer.Run(func() int { return ok })
		return nil
	})
	_ = handled(t, outer, func(ctx context.Context) error {
		shared.Context = ctx
		if err := core.Settle(late, "outer", 50); !errors.Is(err, core.ErrBillUnknown) {
			t.Errorf("settled the next call: %v", err)
		}
		return nil
	})
	wantLeft(t, limiter, "outer", me, hour, 90)
}

// An estimate that was counted here while Redis was away is given back here, and not in the Redis that is back
// and never charged it.
func TestSettlingWhenRedisIsBack(t *testing.T) {
	server := redistest.Start(t)
	rule := estimating("n", core.PerHour(10), 4)
	rule.OnStoreError = core.CountLocally(1)
	guard := newGuard(t, newLimiter(t, core.Options{Redis: server.Client(t), Timeout: patient}), rule)
	wantSettled(t, guard, "n", 3, nil)
	server.Kill()
	err := handled(t, guard, func(ctx context.Context) error {
		server.Restart()
		if _, err := newLimiter(t, core.Options{Redis: server.Client(t)}).MustCounter("n", core.PerHour(10)).AllowN(background, me, 5); err != nil {
			t.Fatal(err)
		}
		return core.Settle(ctx, "n", 1)
	})
	if err != nil {
		t.Error(err)
	}
	wantLeft(t, newLimiter(t, core.Options{Redis: server.Client(t)}), "n", me, core.PerHour(10), 5)
}
