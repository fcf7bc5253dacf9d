package core_test

import (
	"fmt"
	"math"
	"runtime"
	"testing"
	"time"

	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/core/internal/algorithm"
	"github.com/accesslimit/accesslimit/internal/logtest"
)

// planned returns a rule of two calls an hour, or of the limit that the caller's plan has.
func planned(plan func(core.Request) (core.Limit, error)) core.Rule {
	return core.Rule{Name: "n", Seconds: 3600, MaxCount: 2, Key: core.ByUser, LimitFor: plan}
}

// If a plan is wrong, the rule's own limit takes its place, and that is logged once.
func TestInvalidPlans(t *testing.T) {
	for name, test := range map[string]struct {
		limit core.Limit
		err   error
		told  string
	}{
		"an error":          {core.Limit{}, errVerify, errVerify.Error()},
		"a limit and error": {core.PerHour(9), errVerify, errVerify.Error()},
		"no Max":            {core.Limit{Window: time.Hour}, nil, "Max = 0"},
		"negative":          {core.PerHour(-5), nil, "Max = -5"},
		"too large":         {core.PerHour(noMax()), nil, "10^12"},
		"no span":           {core.Limit{Max: 9}, nil, "Window = 0s"},
		"no zone":           {core.PerCalendarDay(9, ""), nil, "needs a zone"},
		"a long log":        {core.Limit{Max: 10_001, Window: time.Hour, Algorithm: core.SlidingLog}, nil, "10,000"},
		"a huge bucket":     {core.Limit{Max: 1, Window: 366*24*time.Hour - time.Microsecond, Burst: mostPermits, Algorithm: core.TokenBucket}, nil, "Burst"},
		"no algorithm":      {core.Limit{Max: 9, Window: time.Hour, Algorithm: 77}, nil, "Algorithm(77)"},
	} {
		t.Run(name, func(t *testing.T) {
			var log logtest.Log
			limiter := newLimiter(t, core.Options{Logger: log.Logger(), Identify: whoSays})
			guard := newGuard(t, limiter, planned(func(core.Request) (core.Limit, error) { return test.limit, test.err }))
			wantServed(t, guard, by("a"), ok, 200, 200, 429)
			wantLeft(t, limiter, "n", "user:a", core.PerHour(2), 0)
			if log.Count("level=WARN", "rule=n", "plan could not be found", test.told) != 1 || log.Count("plan could not") != 1 {
				t.Errorf("want one line that says %q, got: %s", test.told, log.String())
			}
		})
	}
}

// Inside a handler nothing would give slots back, so a plan by Concurrency is ignored there. A guard
// takes its slots.
func TestAPlanOfSlotsInsideAHandler(t *testing.T) {
	var log logtest.Log
	limiter := newLimiter(t, core.Options{Logger: log.Logger()})
	rule := planned(func(core.Request) (core.Limit, error) { return core.InFlight(9), nil })
	check := limiter.MustCheck(rule)
	for i, want := range []int{200, 200, 429} {
		if got := status(check.Allow(newView("GET", "/"), "s")); got != want {
			t.Errorf("call %d: %d, want %d", i, got, want)
		}
	}
	wantLeft(t, limiter, "n", "s", core.InFlight(9), 9)
	if log.Count("level=WARN", "plan", "use Limiter.Slots") != 1 {
		t.Errorf("the log does not say what to do: %s", log.String())
	}
	rule.Key = nil
	serveInside(t, newGuard(t, limiter, rule), func() { wantLeft(t, limiter, "n", me, core.InFlight(9), 8) })
}

// If a service makes up a limit for each call, limits beyond a number are prepared anew each time,
// and take no memory.
func TestManyPlansTakeNoMemory(t *testing.T) {
	limiter := newLimiter(t, core.Options{MaxKeys: 100})
	core.UseAnswers(limiter, algorithm.Verdict{Remaining: 1, ResetAfter: 1})
	n := 0
	guard := newGuard(t, limiter, core.Rule{Name: "n", Seconds: 3600, LimitFor: func(core.Request) (core.Limit, error) {
		n++
		return core.PerDay(n), nil
	}})
	use := func(calls int) {
		t.Helper()
		for range calls {
			v := newView("GET", "/")
			wantStatus(t, guard, v, 200)
			if got, want := v.response["Ratelimit-Policy"][0], fmt.Sprintf(`"n";q=%d;w=86400`, n); got != want {
				t.Fatalf("plan %d: %s, want %s", n, got, want)
			}
		}
	}
	use(2000)
	before := heapInUse()
	use(8_000)
	if grown := int64(heapInUse()) - int64(before); grown > 200_000 {
		t.Errorf("8,000 more limits keep %d bytes", grown)
	}
	runtime.KeepAlive(guard)
}

func TestUnlimitedDirectCalls(t *testing.T) {
	onBothEngines(t, func(t *testing.T, options core.Options, _ core.Source) {
		var heard decisions
		options.OnDecision = heard.note
		limiter := newLimiter(t, options)
		for _, n := range []int{0, 1, math.MaxInt} {
			d, err := limiter.MustCounter("n", core.Unlimited).AllowN(background, "s", n)
			if err != nil || !d.Allowed || d.Reason != core.Allowed || d.Limit != core.Unlimited || d.Remaining != math.MaxInt || d.Source != core.FromNobody || d.Key != "s" {
				t.Errorf("%+v, %v", d, err)
			}
		}
		if granted, d, err := limiter.MustCounter("m", core.PerHour(1)).With(core.Unlimited).AllowUpTo(background, "s", math.MaxInt); granted != math.MaxInt || !d.Allowed || err != nil {
			t.Error(granted, d, err)
		}
		if d := heard.last(t, 4); d.Limit != core.Unlimited {
			t.Errorf("OnDecision received %+v", d)
		}
		if options.Redis != nil && len(options.Redis.Keys(background, "*").Val()) > 0 {
			t.Error("a caller without a limit has a key")
		}
		if _, err := limiter.Counter("", core.Unlimited); err == nil {
			t.Error("no error for a counter without a name")
		}
		if d, err := limiter.MustCounter("n", core.Unlimited).Allow(background, ""); err == nil || d.Allowed {
			t.Errorf("no error for an empty subject: %+v", d)
		}
		_, err := limiter.MustCounter("n", core.Unlimited).AllowN(background, "s", -1)
		wantRuleError(t, err, "n", "n", "-1")
	})
}
