package core_test

import (
	"cmp"
	"context"
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/core/operate"
	"github.com/accesslimit/accesslimit/internal/algorithms"
	"github.com/accesslimit/accesslimit/internal/redistest"
)

// Each algorithm reports each threshold when a call reaches it, with what is in use then.
func TestThresholds(t *testing.T) {
	onEveryDeployment(t, func(t *testing.T, options core.Options) {
		limits := map[string]core.Limit{"month": core.PerCalendarMonth(10, "Pacific/Auckland")}
		for _, algorithm := range algorithms.Charged() {
			limits[algorithm.String()] = core.Limit{Max: 10, Window: 100 * 24 * time.Hour, Algorithm: algorithm}
		}
		for name, limit := range limits {
			options, heard := warning(options)
			limiter := newLimiter(t, options)
			guard := newGuard(t, limiter, core.Rule{Name: name, Limit: limit, Warn: []float64{0.01, 0.75, 1}})
			for range 12 {
				guard.Check(newView("GET", "/"))
			}
			limiter.Close()
			begin := name + " " + me + " " + limit.String() + ": "
			wantReports(t, heard.all(), begin+"0.01, 1 used", begin+"0.75, 8 used", begin+"1, 10 used")
			for _, r := range heard.all() {
				if r.ResetAfter <= 0 || time.Since(r.Time).Abs() > time.Minute {
					t.Errorf("%s is full after %v, at %v", name, r.ResetAfter, r.Time)
				}
			}
		}
	})
}

// Every limit of a rule is reported by itself: further ones, those of plans and overrides. A call of
// a high cost reaches several thresholds. Rules without Warn report nothing.
func TestThresholdsOfEveryLimit(t *testing.T) {
	onBothEngines(t, func(t *testing.T, options core.Options, _ core.Source) {
		options, heard := warning(options)
		limiter := newLimiter(t, options)
		rule := core.Rule{
			Name: "n", Limit: core.PerHour(10), Also: []core.Limit{core.PerDay(4)}, Warn: []float64{0.5, 1},
			Plans: map[string]core.Limit{"pro": core.PerHour(20)}, Plan: planOf("pro"), Cost: cost(4),
		}
		other := core.Rule{Name: "other", Limit: core.PerHour(8), Key: rule.Key}
		guard := newGuard(t, limiter, rule, other)
		wantStatus(t, guard, newView("GET", "/"), 200)
		wantReports(t, heard.await(t, 2), "n "+me+" 4/24h: 0.5, 4 used", "n "+me+" 4/24h: 1, 4 used")
		if _, err := limiter.MustCounter("n", core.PerDay(4)).Reset(background, me); err != nil {
			t.Fatal(err)
		}
		setOverride(t, limiter, "n", me, operate.Override{Limits: []core.Limit{core.PerHour(8)}})
		wantStatus(t, guard, newView("GET", "/"), 200)
		limiter.Close()
		wantReports(t, heard.all()[2:], "n "+me+" 8/h: 1, 8 used")
	})
}

// Only a charge of the rule reaches a threshold. A refused call does not, nor a call that must log
// in first, one whose permits another limit refuses, use that a handle of the name charges, or a
// call that is counted here because Redis cannot count it.
func TestOnlyChargesReachThresholds(t *testing.T) {
	onBothEngines(t, func(t *testing.T, options core.Options, _ core.Source) {
		options, heard := warning(options)
		options.Identify = whoSays
		limiter := newLimiter(t, options)
		half := core.Rule{Name: "half", Limit: core.PerHour(2), Warn: []float64{0.5, 1}, Key: key("s")}
		login := core.Rule{Name: "login", Limit: core.PerHour(2), NeedLogin: true}
		full := core.Rule{Name: "full", Limit: core.PerHour(1), Key: key("s")}
		charge(t, limiter, "full", "s", full.Limit, 1)
		for range 3 {
			wantStatus(t, newGuard(t, limiter, half, login), newView("GET", "/"), 401)
			wantStatus(t, newGuard(t, limiter, half, full), newView("GET", "/"), 429)
		}
		charge(t, limiter, "half", "s", half.Limit, 1)
		wantStatus(t, newGuard(t, limiter, half, full), newView("GET", "/"), 429)
		wantStatus(t, newGuard(t, limiter, half), newView("GET", "/"), 200)
		wantStatus(t, newGuard(t, limiter, half), newView("GET", "/"), 429)
		limiter.Close()
		wantReports(t, heard.all(), "half s 2/h: 1, 2 used")
	})
	t.Run("here", func(t *testing.T) {
		client := redistest.Start(t).Client(t)
		options, heard := warning(core.Options{Redis: client})
		limiter := newLimiter(t, options)
		if err := client.RPush(background, core.CounterKey("accesslimit", me, "n", core.PerHour(3)), "in the way").Err(); err != nil {
			t.Fatal(err)
		}
		guard := newGuard(t, limiter, core.Rule{Name: "n", Limit: core.PerHour(3), Warn: []float64{0.1}, OnStoreError: core.CountLocally(1)})
		wantServed(t, guard, newView("GET", "/"), 200, 200, 200, 200, 429)
		limiter.Close()
		wantReports(t, heard.all())
	})
}

// The next window is reported again. That of a fixed or calendar window begins when the window
// ends, any other one a window after the call that reached the threshold.
func TestThresholdOfTheNextWindow(t *testing.T) {
	for name, test := range map[string]struct {
		limit core.Limit
		half  int
		ends  time.Duration // after the first report
	}{
		"fixed":    {core.PerHour(4).Fixed(), 2, time.Hour - 10*time.Minute},
		"calendar": {core.PerHour(4).Aligned(), 2, time.Hour - 10*time.Minute},
		"sliding":  {core.PerHour(4), 2, time.Hour},
		"bucket":   {core.PerHour(4).Bucket(8), 4, 2 * time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			options, heard := warning(core.Options{})
			limiter, clock := atTestTime(t, options)
			check := limiter.MustCheck(core.Rule{Name: "n", Limit: test.limit, Warn: []float64{0.5}})
			use := func(n int) {
				for range n {
					check.Allow(newView("GET", "/"), "s")
				}
				core.AwaitReports(limiter)
			}
			use(1)
			clock.add(10 * time.Minute)
			use(test.half - 1 + test.limit.Burst/8) // in place of what has come back
			heard.await(t, 1)
			for reports, wait := range []time.Duration{test.ends - time.Second, time.Second} {
				clock.add(wait)
				if reports == 0 && test.ends < time.Hour {
					continue // Reset would start another window
				}
				if _, err := limiter.MustCounter("n", test.limit).Reset(background, "s"); err != nil && test.ends >= time.Hour {
					t.Fatal(err)
				}
				use(test.half)
				heard.await(t, reports+1)
			}
		})
	}
}

// Reset forgets what was reported, and other processes learn of it within a second.
func TestResetForgetsThresholds(t *testing.T) {
	onBothEngines(t, func(t *testing.T, options core.Options, _ core.Source) {
		options, heard := warning(options)
		limiter := newLimiter(t, options)
		rules := []core.Rule{
			{Name: "n", Limit: core.PerHour(2), Also: []core.Limit{core.PerDay(4)}, Warn: []float64{0.5}, Mode: core.DryRun},
			{Name: "m", Limit: core.PerHour(2), Plan: planOf("pro"), Plans: map[string]core.Limit{"pro": core.PerDay(2).Fixed()}, Warn: []float64{0.5}},
		}
		guard := newGuard(t, limiter, rules...)
		for round := range 3 {
			wantStatus(t, guard, newView("GET", "/"), 200)
			wantStatus(t, guard, newView("GET", "/"), 200)
			heard.await(t, 3*(round+1))
			if changed, err := guard.Reset(background, me); !changed || err != nil {
				t.Errorf("Reset: %v, %v", changed, err)
			}
		}
		if changed, err := guard.Reset(background, me); changed || err != nil {
			t.Errorf("a second Reset: %v, %v", changed, err)
		}
	})
}

func TestWarnRefused(t *testing.T) {
	limiter := newLimiter(t, core.Options{OnThreshold: func(context.Context, core.Threshold) {}})
	for _, warn := range [][]float64{
		{0}, {-0.1}, {1.1}, {math.NaN()}, {math.Inf(1)}, {0.5, 0.5}, {1, 0.5}, {0.1, 0.2, 0.3, 0.4, 0.5}, {0.5, math.NaN()},
	} {
		var wrong *core.RuleError
		if _, err := limiter.Guard(core.Rule{Seconds: 1, Warn: warn}); !errors.As(err, &wrong) || wrong.Field != "Warn" {
			t.Errorf("%v: %v", warn, err)
		}
	}
	var wrong *core.RuleError
	if _, err := limiter.Guard(core.Rule{Seconds: 1, Warn: []float64{1}, Lease: 2}); !errors.As(err, &wrong) || wrong.Field != "Lease" {
		t.Error(err)
	}
	if _, err := newLimiter(t, core.Options{}).Guard(core.Rule{Seconds: 1, Warn: []float64{1}}); err == nil || !strings.Contains(err.Error(), "needs Options.OnThreshold") {
		t.Error(err)
	}
	// The rule keeps its own copy.
	warn := []float64{math.SmallestNonzeroFloat64, 0.5, 0.75, 1}
	guard := newGuard(t, limiter, core.Rule{Seconds: 1, Warn: warn})
	warn[0] = 7
	if got := guard.Rules()[0].Warn; cmp.Compare(got[0], 7) == 0 {
		t.Errorf("Warn is %v", got)
	}
}
