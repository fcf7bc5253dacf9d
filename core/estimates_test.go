package core_test

import (
	"context"
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/accesslimit/accesslimit/core"
)

// The terms of a rule cut its estimates, and bound its debt. Wrong ones are refused when the rule is made.
func TestTermsOfEstimates(t *testing.T) {
	onBothEngines(t, func(t *testing.T, options core.Options, _ core.Source) {
		limiter := newLimiter(t, options)
		rule := core.Rule{
			Name: "n", Limit: core.PerHour(10), Also: []core.Limit{core.PerDay(8)},
			Estimate: cost(math.MaxInt), Bill: core.BillTerms{MaxEstimate: 0.25, MaxDebt: 0.5},
		}
		guard := newGuard(t, limiter, rule)
		_ = handled(t, guard, func(context.Context) error {
			wantLeft(t, limiter, "n", me, core.PerHour(10), 8)
			return nil
		})
		wantSettled(t, guard, "n", 11, core.ErrDebtExceeded) // 2 + 11 of 8 and a debt of 4
		if n := limiter.Stats().DebtExceeded; n != 1 {
			t.Errorf("%d exceeded", n)
		}
		rule.Name, rule.Estimate, rule.Bill = "whole", cost(11), core.BillTerms{}
		wantStatus(t, newGuard(t, limiter, rule), newView("GET", "/"), 400)
	})
}

// An estimate is cut until it fits into all limits in force. The store names one that it exceeds at a
// time.
func TestEstimatesAreCutToEachLimitInForce(t *testing.T) {
	onBothEngines(t, func(t *testing.T, options core.Options, _ core.Source) {
		limiter, limit := newLimiter(t, options), core.PerHour(10)
		operator{t, limiter, "n", limit, []core.Limit{core.PerDay(100)}}.max("s", 1000)
		counter := limiter.MustCounter("n", limit, core.PerDay(100)).WithBills(core.BillTerms{MaxEstimate: 0.25})
		b := billing{t, counter.With(core.Unlimited)}
		b.open(5000)
		b.left(75, 975)
	})
}

// An override below the cut estimate cuts it once more, so that a small tenant is not refused for ever. Without
// MaxEstimate, a cost above the override is an error.
func TestEstimatesAreCutToOverrides(t *testing.T) {
	onBothEngines(t, func(t *testing.T, options core.Options, _ core.Source) {
		limiter, limit := newLimiter(t, options), core.PerHour(1000)
		terms := core.BillTerms{MaxEstimate: 0.25}
		day := core.PerDay(2000)
		o := operator{t, limiter, "n", limit, []core.Limit{day}}
		guess := core.Rule{Name: "n", Limit: limit, Also: []core.Limit{day}, Estimate: cost(math.MaxInt), Bill: terms}
		exact := guess
		exact.Estimate, exact.Bill = cost(250), core.BillTerms{}
		beside := core.Rule{Name: "beside", Limit: limit, Mode: core.DryRun, Cost: cost(1001)}
		guard := newGuard(t, limiter, guess, beside)
		b := billing{t, limiter.MustCounter("n", limit, day)}
		o.max("s", 100)
		o.max(me, 100)
		_, _, err := b.Open(background, "s", 250)
		b.is(err, core.ErrCostExceedsLimit)
		b.Counter = b.WithBills(terms)
		bill := b.open(math.MaxInt)
		b.left(75, 1975)
		b.is(bill.Settle(background, 40), nil)
		b.left(60, 1960)
		err = handled(t, guard, func(ctx context.Context) error {
			wantLeft(t, limiter, "n", me, core.PerHour(100), 75)
			return core.Settle(ctx, core.Costs{"n": 30})
		})
		b.is(err, nil)
		wantLeft(t, limiter, "n", me, core.PerHour(100), 70)
		wantStatus(t, newGuard(t, limiter, exact), newView("GET", "/"), 400)
		plain := guess
		plain.Estimate, plain.Bill = nil, core.BillTerms{}
		for i, both := range [][]core.Rule{{guess, plain}, {plain, guess}} { // whichever rule callers are shown
			wantStatus(t, newGuard(t, limiter, both...), newView("GET", "/"), 200)
			wantLeft(t, limiter, "n", me, core.PerHour(100), 70-25*(i+1))
		}
		free := guess
		free.Estimate = cost(0)
		err = handled(t, newGuard(t, limiter, plain, free), func(ctx context.Context) error { return core.Settle(ctx, core.Costs{"n": 50}) })
		b.is(err, nil)
		wantLeft(t, limiter, "n", me, core.PerHour(100), 19) // of a rule by which the call costs nothing, there is nothing to settle
		awaitDryRuns(t, limiter)
		for _, d := range limiter.Stats().Decisions {
			if d.Rule == "beside" && d.Count != 1 {
				t.Errorf("%+v, want one decision", d)
			}
		}
	})
}

// A charge that a settlement adds reaches thresholds, as any other does. One that gives back does not.
func TestAnOverrunReachesThresholds(t *testing.T) {
	onBothEngines(t, func(t *testing.T, options core.Options, _ core.Source) {
		options, heard := warning(options)
		limiter, hour := newLimiter(t, options), core.PerHour(10)
		rule := estimating("n", hour, 2)
		rule.Also, rule.Warn = []core.Limit{core.PerDay(30)}, []float64{0.5, 1}
		guard := newGuard(t, limiter, rule)
		for _, used := range []int{0, 6, 1, 11} {
			wantSettled(t, guard, "n", used, nil)
		}
		limiter.Close()
		wantReports(t, heard.all(), "n "+me+" 10/h: 0.5, 6 used", "n "+me+" 10/h: 1, 10 used", "n "+me+" 30/24h: 0.5, 18 used")
	})
}

// A rule that cannot be settled is refused when it is made, or when LimitFor returns such a limit.
func TestRulesThatCannotBeSettled(t *testing.T) {
	hour := core.PerHour(10)
	for want, change := range map[string]func(*core.Rule){
		"Lease lease_and_estimate":   func(r *core.Rule) { r.Lease = 2 },
		"Bill.MaxDebt bill_terms":    func(r *core.Rule) { r.Bill.MaxDebt = 11 },
		"Bill no_estimate":           func(r *core.Rule) { r.Estimate, r.Bill.MaxDebt = nil, 2 },
		"Estimate cost_and_estimate": func(r *core.Rule) { r.Cost = cost(1) },
		"Limit estimate_algorithm":   func(r *core.Rule) { r.Limit = core.InFlight(3) },
		"Also[0] estimate_algorithm": func(r *core.Rule) { r.Also = []core.Limit{core.PerDay(9).Log()} },
		`Plans["pro"] estimate_algorithm`: func(r *core.Rule) {
			r.Plan, r.Plans = planOf("pro"), map[string]core.Limit{"pro": core.PerDay(9).Log()}
		},
	} {
		rule := estimating("n", hour, 2)
		change(&rule)
		if got := strings.Join(mistakesOf(rule, nil), ", "); got != want {
			t.Errorf("%q, want %q", got, want)
		}
		rule.Cost, rule.Estimate, rule.Bill = cost(2), nil, core.BillTerms{}
		if got := mistakesOf(rule, nil); got != nil {
			t.Errorf("not settled: %q", got)
		}
	}
	limiter, rule := newLimiter(t, core.Options{}), estimating("n", hour, 2)
	rule.LimitFor = func(core.Request) (core.Limit, error) { return core.PerDay(9).Log(), nil }
	wantSettled(t, newGuard(t, limiter, rule), "n", 1, nil)
	wantLeft(t, limiter, "n", me, hour, 9)
}

// The estimates of a check are its caller's, those of each context by itself. Wrong ones are errors.
func TestEstimatesOfACheck(t *testing.T) {
	limiter, hour := newLimiter(t, core.Options{}), core.PerHour(100)
	check := limiter.MustCheck(estimating("input", hour, 1), estimating("output", hour, 1), core.Rule{Name: "plain", Limit: hour})
	allow := func(want int, estimates map[string]int) context.Context {
		t.Helper()
		ctx, err := check.WithEstimates(background, estimates)
		if err != nil {
			t.Fatal(err)
		}
		if got := status(check.Allow(newView("GET", "/").In(ctx), "s")); got != want {
			t.Errorf("%v: status %d, want %d", estimates, got, want)
		}
		return ctx
	}
	first, second := allow(200, core.Costs{"input": 20, "output": 60}), allow(200, map[string]int{"input": 5})
	refused := allow(429, map[string]int{"output": 60})
	allow(400, map[string]int{"output": 101})
	wantRuleError(t, core.Settle(refused, core.Costs{"input": 1}), "", "rule", "input")
	if err := errors.Join(core.Settle(first, core.Costs{"input": 25, "output": 10}), core.Settle(second, core.Costs{"input": 0})); err != nil {
		t.Error(err)
	}
	for name, left := range map[string]int{"input": 75, "output": 89, "plain": 98} {
		wantLeft(t, limiter, name, "s", hour, left)
	}
	for _, wrong := range []map[string]int{{"plain": 2}, {"missing": 2}, {"input": -1}} {
		if ctx, err := check.WithEstimates(background, wrong); !isWrong(err) || ctx != background {
			t.Errorf("%v: %v", wrong, err)
		}
	}
	if _, err := (*core.Check)(nil).WithEstimates(background, nil); !isWrong(err) {
		t.Errorf("no check: %v", err)
	}
}

// A check in a handler leaves the estimates of the middleware around it alone, and so does another
// check.
func TestEstimatesOfChecksInsideOfAMiddleware(t *testing.T) {
	limiter, hour := newLimiter(t, core.Options{}), core.PerHour(100)
	guard := newGuard(t, limiter, estimating("outer", hour, 5))
	first, second := limiter.MustCheck(estimating("first", hour, 1)), limiter.MustCheck(estimating("second", hour, 1))
	err := handled(t, guard, func(ctx context.Context) error {
		ctx, err := first.WithEstimates(ctx, map[string]int{"first": 10})
		if err == nil {
			ctx, err = second.WithEstimates(ctx, nil)
		}
		if err != nil {
			t.Fatal(err)
		}
		for _, check := range []*core.Check{first, second, first} { // one Allow replaces the one before
			v := newView("GET", "/").In(ctx)
			if got := status(check.Allow(v, me)); got != 200 {
				t.Fatalf("status %d", got)
			}
		}
		return core.Settle(ctx, core.Costs{"outer": 2, "first": 3, "second": 4})
	})
	if err != nil {
		t.Error(err)
	}
	for name, left := range map[string]int{"outer": 98, "first": 87, "second": 96} {
		wantLeft(t, limiter, name, me, hour, left)
	}
}

// A rule with a Lease and one whose cost is known afterwards do not share a name, in either order: leased
// permits would be used while the counter is in debt.
func TestNoLeaseBesideAnEstimate(t *testing.T) {
	hour := core.PerHour(10)
	leased, settled, plain := core.Rule{Name: "n", Limit: hour, Lease: 2}, estimating("n", hour, 2), core.Rule{Name: "n", Limit: hour}
	for _, rules := range [][]core.Rule{{leased, settled}, {settled, leased}, {plain, leased, settled}, {settled, plain, leased}} {
		limiter, last := newLimiter(t, core.Options{}), len(rules)-1
		for _, rule := range rules[:last] {
			attach(t, limiter, rule)
		}
		_, err := limiter.Guard(rules[last])
		wantRuleError(t, err, "n", "Name", "n")
		if err == nil || !strings.Contains(err.Error(), "in debt") {
			t.Errorf("the error does not say why: %v", err)
		}
		_, err = newLimiter(t, core.Options{}).Guard(rules...)
		wantRuleError(t, err, "n", "Name", "n")
	}
	dry := leased
	dry.Mode = core.DryRun // has counters of its own
	newGuard(t, newLimiter(t, core.Options{}), settled, dry)
}
