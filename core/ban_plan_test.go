package core_test

import (
	"context"
	"testing"
	"time"

	"github.com/accesslimit/accesslimit/core"
)

// A ban holds for callers whose plan has no limit, too: there is no counter then that could speak
// for it.
func TestBanHoldsWhoIsUnlimited(t *testing.T) {
	onBothEngines(t, func(t *testing.T, options core.Options, _ core.Source) {
		limiter := newLimiter(t, options)
		guard := newGuard(t, limiter, core.Rule{
			Name: "api", Seconds: 60, Ban: core.Ban{ByHand: true},
			LimitFor: func(core.Request) (core.Limit, error) { return core.Unlimited, nil },
		})
		wantStatus(t, guard, newView("GET", "/"), 200)
		if _, err := limiter.Ban(context.Background(), "api", "ip:192.0.2.1", time.Minute); err != nil {
			t.Fatal(err)
		}
		call := newView("GET", "/")
		d := wantStatus(t, guard, call, 429).Refusal.Decision
		if d.Reason != core.Banned || d.RetryAfter <= 59*time.Second || d.RetryAfter > time.Minute {
			t.Errorf("the decision is %+v", d)
		}
		if got := call.response.Get("Ratelimit"); got != `"api";r=0;t=60` {
			t.Errorf("RateLimit is %s", got)
		}
		wantStatus(t, guard, newView("GET", "/").from("192.0.2.2"), 200)
	})
}
