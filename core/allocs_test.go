//go:build !race

// The race detector makes sync.Pool forget at random, so allocations are counted without it.

package core_test

import (
	"context"
	"testing"
	"time"

	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/core/adapter"
	"github.com/accesslimit/accesslimit/core/operate"
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
		"IPv6":       {[]core.Rule{{Name: "c", Seconds: 60, MaxCount: plenty}}, newView("GET", "/x").From("2001:db8::1")},
		"forwarded":  {[]core.Rule{{Name: "d", Seconds: 60, MaxCount: plenty}}, newView("GET", "/x").From("10.0.0.1").With("X-Forwarded-For", "1.1.1.1, 203.0.113.7")},
		"two limits": {[]core.Rule{{Name: "f", Seconds: 60, MaxCount: plenty, Also: []core.Limit{core.PerHour(plenty)}}}, newView("GET", "/x")},
		"bucket":     {[]core.Rule{{Name: "e", Limit: core.PerSecond(plenty).Bucket(0)}}, newView("GET", "/x")},
	} {
		t.Run(name, func(t *testing.T) {
			guard := newGuard(t, limiter, test.rules...)
			wantAllocs(t, 0, func() {
				clear(test.view.Response)
				wantStatus(t, guard, test.view, 200)
			})
		})
	}
	rule := core.Rule{Name: "g", Seconds: 60, MaxCount: plenty}
	inHandler := newLimiter(t, core.Options{}).MustCheck(rule)
	warns := change(rule, func(r *core.Rule) { r.Warn = []float64{1e-6, 0.8, 1} })
	v := newView("GET", "/x")
	for name, check := range map[string]func(adapter.View) core.Answer{
		"following a set": newRuleSet(t, limiter, rule).MustGuard("g").Check,
		"no headers":      newGuard(t, newLimiter(t, core.Options{Headers: core.NoHeaders}), rule).Check,
		"with thresholds": newGuard(t, newLimiter(t, core.Options{OnThreshold: func(context.Context, core.Threshold) {}}), warns).Check,
		"in a handler":    func(v adapter.View) core.Answer { return inHandler.Allow(v, "account:carol") },
	} {
		t.Run(name, func(t *testing.T) {
			check(v) // reaches the first threshold
			wantAllocs(t, 0, func() {
				clear(v.Response)
				if check(v).Refusal != nil {
					t.Fatal("refused")
				}
			})
		})
	}
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
			setOverride(t, limiter, "reply", "user:bob", operate.Override{Blocked: true}) // so that marks are looked up
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

// There are six: the refusal, its message, its body, its list of limits, the subject and the wait. A
// reference is one more, with the text of the limit that it holds three.
func TestAllocationsOfARefusedCall(t *testing.T) {
	for most, options := range map[float64]core.Options{6: {}, 9: keyed(1)} {
		guard := newGuard(t, newLimiter(t, options), core.Rule{Name: "a", Limit: core.Limit{Max: 1, Window: 24 * time.Hour}})
		v := newView("GET", "/x")
		guard.Check(v)
		wantAllocs(t, most, func() {
			clear(v.Response)
			wantStatus(t, guard, v, 429)
		})
	}
}

// looseView is a call of a framework that serves other spellings of a path than the registered one.
type looseView struct {
	*fakeView
	anyCase, anySlash bool
}

func (v looseView) Loose() (anyCase, anySlash bool) { return v.anyCase, v.anySlash }
