package core_test

import (
	"errors"
	"math"
	"testing"
	"time"

	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/internal/redistest"
)

// wantCosts checks what is counted of costs that are known afterwards.
func wantCosts(t *testing.T, limiter *core.Limiter, want ...core.CostStats) {
	t.Helper()
	got := limiter.Stats().Costs
	if len(got) != len(want) {
		t.Fatalf("the costs are %+v, want %+v", got, want)
	}
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("the costs are %+v, want %+v", got[i], want[i])
		}
	}
}

// Bills are counted where they are opened, and where they are settled, each once.
func TestStatsCountBills(t *testing.T) {
	onBillings(t, func(b billing, limiter *core.Limiter) {
		wantCosts(b.T, limiter)
		_ = b.open(2) // is never settled
		first, second := b.open(4), b.open(3)
		b.is(first.Settle(background, 6), nil)
		b.is(first.Settle(background, 6), nil)
		b.is(first.Settle(background, 7), core.ErrBillSettled)
		resumed, err := b.Resume(second.Token())
		b.is(err, nil)
		b.left(0, 89)
		b.is(resumed.Cancel(background), nil)
		b.left(2, 92)
		_, err = b.Charge(background, "s", 15)
		b.is(err, core.ErrDebtExceeded)
		_, _, err = limiter.MustCounter("free", core.Unlimited).Open(background, "s", 5)
		b.is(err, nil)
		wantCosts(b.T, limiter,
			core.CostStats{Rule: "free"},
			core.CostStats{Rule: "tokens", Opened: 3, Estimated: 9, Settled: 2, SettledEstimates: 7, Used: 6, DebtExceeded: 3})
		if n := limiter.Stats().DebtExceeded; n != 3 {
			b.Errorf("%d permits exceed the debt", n)
		}
	})
}

// A settlement whose answer was lost is counted when it is repeated. A settlement of a bill that Redis
// has lost is counted as unknown.
func TestStatsCountSettlementsWithoutAnAnswer(t *testing.T) {
	server := redistest.Start(t)
	limiter := newLimiter(t, core.Options{Redis: server.Client(t), Timeout: time.Second})
	b := billing{t, limiter.MustCounter("tokens", core.PerHour(math.MaxInt32))}
	b.is(b.open(1).Cancel(background), nil) // from here on, Redis knows the script
	bill, lost := b.open(4), b.open(5)
	server.Stop()
	b.is(bill.Settle(background, 6), core.ErrStore)
	server.Continue()
	eventually(t, "the bill is settled", func() bool { return bill.Settle(background, 6) == nil })
	b.is(bill.Settle(background, 6), nil)
	if err := server.Client(t).FlushAll(background).Err(); err != nil {
		t.Fatal(err)
	}
	if err := lost.Settle(background, 5); !errors.Is(err, core.ErrBillUnknown) {
		t.Errorf("Settle of a lost bill: %v", err)
	}
	wantCosts(t, limiter, core.CostStats{Rule: "tokens", Opened: 3, Estimated: 10, Settled: 2, SettledEstimates: 5, Used: 6, Unknown: 1})
}

// A call that does not count by its outcome is counted as settled at nothing, whether its handler settled
// it or not. One that counts is counted once its outcome is known.
func TestStatsOfUncountedCalls(t *testing.T) {
	for _, test := range []struct {
		used, status int // -1: not settled
		want         core.CostStats
	}{
		{-1, 200, core.CostStats{}},
		{-1, 500, core.CostStats{Settled: 1, SettledEstimates: 4}},
		{0, 500, core.CostStats{Settled: 1, SettledEstimates: 4}},
		{3, 200, core.CostStats{Settled: 1, SettledEstimates: 4, Used: 3}},
		{3, 500, core.CostStats{Settled: 1, SettledEstimates: 4}},
		{9, 500, core.CostStats{Settled: 1, SettledEstimates: 4}},
		{21, 200, core.CostStats{Settled: 1, SettledEstimates: 4, Used: 21, DebtExceeded: 1}},
		{21, 500, core.CostStats{Settled: 1, SettledEstimates: 4}},
	} {
		limiter := newLimiter(t, core.Options{})
		rule := estimating("n", core.PerHour(10), 4)
		rule.Count, rule.Also = is(200), []core.Limit{core.PerDay(100)}
		answer := wantStatus(t, newGuard(t, limiter, rule), newView("GET", "/"), ok)
		answer.Run(func() int {
			if test.used >= 0 {
				_ = core.Settle(answer.Context, "n", test.used)
			}
			return test.status
		})
		test.want.Rule, test.want.Opened, test.want.Estimated = "n", 1, 4
		wantCosts(t, limiter, test.want)
	}
}
