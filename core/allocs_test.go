//go:build !race

// The race detector makes sync.Pool forget at random, so allocations are counted without it.

package core_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/core/adapter"
)

func wantAllocs(t *testing.T, most float64, do func()) {
	t.Helper()
	if got := testing.AllocsPerRun(1000, do); got > most {
		t.Errorf("%v allocations, want at most %v", got, most)
	}
}

const plenty = 1_000_000

func TestAllocationsWhereNoRuleApplies(t *testing.T) {
	limiter := newLimiter(t, core.Options{})
	for name, test := range map[string]struct {
		rule core.Rule
		view adapter.View
	}{
		"method":           {core.Rule{Seconds: 1, Methods: []string{"POST"}}, newView("GET", "/x")},
		"path":             {core.Rule{Seconds: 1, Paths: []string{"/limit/**", "/other/*/x"}}, at("/users/:id", "/users/7")},
		"path, no route":   {core.Rule{Seconds: 1, Paths: []string{"/limit/**"}}, at("", "/quite/a/long/path/of/a/usual/application")},
		"exception":        {core.Rule{Seconds: 1, Except: []string{"/healthz"}}, newView("GET", "/healthz")},
		"path, any case":   {core.Rule{Seconds: 1, Paths: []string{"/Limit/**"}}, looseView{at("", "/users/7"), true, true}},
		"costs nothing":    {core.Rule{Seconds: 1, Cost: cost(0)}, newView("GET", "/x")},
		"several together": {core.Rule{Name: "n", Seconds: 1, Methods: []string{"PUT"}, Paths: []string{"/x"}}, newView("GET", "/x")},
	} {
		t.Run(name, func(t *testing.T) {
			guard := newGuard(t, limiter, test.rule)
			wantAllocs(t, 0, func() { guard.Check(test.view) })
		})
	}
}

// The values of headers are allocated for several calls at once, which is less than one allocation
// for each.
func TestAllocationsOfAnAllowedCall(t *testing.T) {
	limiter := newLimiter(t, core.Options{Identify: whoSays, ClientIP: proxies})
	for name, test := range map[string]struct {
		rules []core.Rule
		view  *fakeView
	}{
		"named":      {[]core.Rule{{Name: "a", Seconds: 60, MaxCount: plenty}}, newView("GET", "/x")},
		"unnamed":    {[]core.Rule{{Seconds: 60, MaxCount: plenty}}, newView("GET", "/users/:id")},
		"by route":   {[]core.Rule{{Name: "b", Seconds: 60, MaxCount: plenty, Paths: []string{"/users/*"}}}, at("/users/:id", "/users/7")},
		"IPv6":       {[]core.Rule{{Name: "c", Seconds: 60, MaxCount: plenty}}, newView("GET", "/x").from("2001:db8::1")},
		"forwarded":  {[]core.Rule{{Name: "d", Seconds: 60, MaxCount: plenty}}, newView("GET", "/x").from("10.0.0.1").with("X-Forwarded-For", "1.1.1.1, 203.0.113.7")},
		"two limits": {[]core.Rule{{Name: "f", Seconds: 60, MaxCount: plenty, Also: []core.Limit{core.PerHour(plenty)}}}, newView("GET", "/x")},
		"bucket":     {[]core.Rule{{Name: "e", Limit: core.PerSecond(plenty).Bucket(0)}}, newView("GET", "/x")},
	} {
		t.Run(name, func(t *testing.T) {
			guard := newGuard(t, limiter, test.rules...)
			wantAllocs(t, 0, func() {
				clear(test.view.response)
				wantStatus(t, guard, test.view, 200)
			})
		})
	}
	t.Run("following a set", func(t *testing.T) {
		guard := newRuleSet(t, limiter, core.Rule{Name: "g", Seconds: 60, MaxCount: plenty}).MustGuard("g")
		v := newView("GET", "/x")
		wantAllocs(t, 0, func() {
			clear(v.response)
			wantStatus(t, guard, v, 200)
		})
	})
	t.Run("no headers", func(t *testing.T) {
		guard := newGuard(t, newLimiter(t, core.Options{Headers: core.NoHeaders}), core.Rule{Seconds: 60, MaxCount: plenty})
		v := newView("GET", "/x")
		wantAllocs(t, 0, func() { guard.Check(v) })
	})
}

// A rule with Warn costs a call nothing more, unless the call reaches a threshold.
func TestAllocationsWithThresholds(t *testing.T) {
	limiter := newLimiter(t, core.Options{OnThreshold: func(context.Context, core.Threshold) {}})
	guard := newGuard(t, limiter, core.Rule{Name: "a", Seconds: 60, MaxCount: plenty, Warn: []float64{1e-6, 0.8, 1}})
	v := newView("GET", "/x")
	wantStatus(t, guard, v, 200)
	wantAllocs(t, 0, func() {
		clear(v.response)
		wantStatus(t, guard, v, 200)
	})
}

func TestAllocationsOfADirectCall(t *testing.T) {
	limiter := newLimiter(t, core.Options{})
	for name, limit := range map[string]core.Limit{
		"sliding": core.PerMinute(plenty), "bucket": core.PerMinute(plenty).Bucket(plenty),
		"fixed":    {Max: plenty, Window: time.Minute, Algorithm: core.FixedWindow},
		"calendar": {Max: plenty, Window: time.Minute, Algorithm: core.CalendarWindow},
		"day":      core.PerCalendarDay(plenty, "Europe/Berlin"), "unlimited": core.Unlimited,
	} {
		t.Run(name, func(t *testing.T) {
			counter, other := limiter.MustCounter("reply", limit), limiter.MustCounter("reply", core.PerSecond(plenty))
			other.With(limit)
			local := counter.WithStorePolicy(core.CountLocally(0.25))
			wantAllocs(t, 0, func() {
				for _, counter := range [...]core.Counter{counter, local} {
					if d, err := counter.Allow(background, "user:alice"); err != nil || !d.Allowed {
						t.Fatal(d, err)
					}
				}
				if d, err := other.With(limit).Allow(background, "user:alice"); err != nil || !d.Allowed {
					t.Fatal(d, err)
				}
			})
		})
	}
}

// A check inside a handler costs what the middleware does.
func TestAllocationsOfACheck(t *testing.T) {
	check := newLimiter(t, core.Options{}).MustCheck(core.Rule{Name: "a", Seconds: 60, MaxCount: plenty})
	v := newView("POST", "/reply")
	wantAllocs(t, 0, func() {
		clear(v.response)
		if check.Allow(v, "account:carol").Refusal != nil {
			t.Fatal("refused")
		}
	})
}

// There are six: the refusal, its message, its body, its list of limits, the subject and the wait. A
// reference is one more, with the text of the limit that it holds three.
func TestAllocationsOfARefusedCall(t *testing.T) {
	for most, options := range map[float64]core.Options{6: {}, 9: keyed(1)} {
		guard := newGuard(t, newLimiter(t, options), core.Rule{Name: "a", Limit: core.Limit{Max: 1, Window: 24 * time.Hour}})
		v := newView("GET", "/x")
		guard.Check(v)
		wantAllocs(t, most, func() {
			clear(v.response)
			wantStatus(t, guard, v, 429)
		})
	}
}

// Callers make up routes beyond those that are counted separately. Such calls cost no more than
// others.
func TestAllocationsOfMadeUpRoutes(t *testing.T) {
	guard := newGuard(t, newLimiter(t, core.Options{Headers: core.NoHeaders}), core.Rule{Seconds: 60, MaxCount: plenty})
	for i := range mostRoutes {
		guard.Check(newView("", fmt.Sprint("/made/Up", i)))
	}
	beyond := newView("", "/made/UpBeyond")
	wantAllocs(t, 0, func() { guard.Check(beyond) })
}
