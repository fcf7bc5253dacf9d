package core_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/internal/redistest"
)

// fallBack returns a rule that counts in this process while Redis is down, by its share of each
// limit.
func fallBack(maxCount int, share float64) core.Rule {
	return core.Rule{Name: "local", Seconds: 3600, MaxCount: maxCount, OnStoreError: core.CountLocally(share)}
}

// While Redis is down, calls are counted here from zero: the share of the limit, rounded up,
// whatever the algorithm.
func TestFallBackLocal(t *testing.T) {
	for _, test := range []struct {
		share float64
		rule  func(*core.Rule)
		want  int
	}{
		{1, func(*core.Rule) {}, 30},
		{0.1, func(*core.Rule) {}, 3},
		{0.11, func(*core.Rule) {}, 4},
		{0.001, func(*core.Rule) {}, 1},
		{0.5, func(r *core.Rule) { r.Seconds, r.MaxCount, r.Limit = 0, 0, core.PerHour(30).Log() }, 15},
		{0.5, func(r *core.Rule) { r.Seconds, r.MaxCount, r.Limit = 0, 0, core.PerHour(30).Fixed() }, 15},
		{0.5, func(r *core.Rule) { r.Seconds, r.MaxCount, r.Limit = 0, 0, core.PerCalendarDay(30, "Europe/Berlin") }, 15},
		{0.5, func(r *core.Rule) { r.Seconds, r.MaxCount, r.Limit = 0, 0, core.PerHour(30).Aligned() }, 15},
		{0.5, func(r *core.Rule) { r.Seconds, r.MaxCount, r.Limit = 0, 0, core.PerHour(1).Bucket(30) }, 15},
		{0.5, func(r *core.Rule) { r.Also = []core.Limit{core.PerDay(9)} }, 5},
		{0.5, func(r *core.Rule) { r.Lease = 10 }, 15},
		{0.5, func(r *core.Rule) { r.Cost = func(core.Request) int { return 4 } }, 3},
		{0.5, func(r *core.Rule) { r.Cost = func(core.Request) int { return 20 } }, 1}, // it takes the whole share
	} {
		rule := fallBack(30, test.share)
		test.rule(&rule)
		t.Run(fmt.Sprintf("%v of %v", test.share, rule.Limit.Algorithm), func(t *testing.T) {
			var heard decisions
			options := deadRedis(t)
			options.OnDecision = heard.note
			guard := newGuard(t, newLimiter(t, options), rule)
			for i := range test.want + 3 {
				want := 200
				if i >= test.want {
					want = 429
				}
				wantStatus(t, guard, newView("GET", "/"), want)
				if d := heard.last(t, i+1); d.Source != core.FromLocal || d.Allowed == (d.Reason == core.LimitExceeded) || d.RetryAfter > 0 == d.Allowed {
					t.Fatalf("call %d: %+v", i, d)
				}
			}
		})
	}
}

// When Redis answers again, it goes on from the counters that it had. Local counts stay in this
// process.
func TestFallBackLocalAndBack(t *testing.T) {
	server := redistest.Start(t)
	var heard decisions
	limiter := newLimiter(t, core.Options{Redis: server.Client(t), Timeout: time.Second, OnDecision: heard.note})
	guard := newGuard(t, limiter, fallBack(5, 0.4))
	wantStatus(t, guard, newView("GET", "/"), 200)
	server.Stop()
	for _, want := range []int{200, 200, 429, 429} {
		wantStatus(t, guard, newView("GET", "/"), want)
	}
	if s := limiter.Stats(); s.Keys != 1 || len(s.StoreErrors) == 0 {
		t.Errorf("%+v, want one counter in this process", s)
	}
	server.Continue()
	for i := 6; ; i++ {
		guard.Check(newView("GET", "/"))
		switch d := heard.last(t, i); d.Source {
		case core.FromLocal:
			time.Sleep(10 * time.Millisecond) // the breaker is still open
		case core.FromRedis:
			if !d.Allowed || d.Remaining > 3 {
				t.Errorf("%+v, want what Redis had", d)
			}
			return
		default:
			t.Fatalf("%+v", d)
		}
	}
}
