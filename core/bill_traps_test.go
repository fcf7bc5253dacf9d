package core_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/accesslimit/accesslimit/core"
)

// These are mistakes that limiters of language models have made in public. TestBills tells others, and
// TestADisconnectDoesNotRefund is one of its own.
func TestMistakesOfOtherGateways(t *testing.T) {
	for name, test := range map[string]func(b gateway){
		"calls at once spend 663 of 100 tokens":                         spendAtOnce,
		"one permit is charged in place of all tokens":                  chargeAllTokens,
		"an answer of 1,200 of 1,000 tokens is free":                    answerAboveTheLimit,
		"the caller chooses the charge by the estimate":                 chooseTheEstimate,
		"the headers after a settlement are those before it":            headersAfterSettling,
		"a cached token counts as a whole one":                          weighCachedTokens,
		"what is held comes back before the work has ended":             holdUntilSettled,
		"a usage that cannot be read costs nothing":                     unreadableUsage,
		"a budget refills every second, and so never accumulates":       monthlyBudget,
		"a limit of the organization leaves the user's estimate behind": limitOfEachLevel,
		"a settlement in another namespace changes this one":            settleElsewhere,
	} {
		t.Run(name, func(t *testing.T) {
			onEveryDeployment(t, func(t *testing.T, options core.Options) {
				limiter := newLimiter(t, options)
				test(gateway{billing{t, limiter.MustCounter("tokens", core.PerDay(1000))}, limiter, options})
			})
		})
	}
}

// gateway has a counter of tokens, and the limiter that made it.
type gateway struct {
	billing
	limiter *core.Limiter
	options core.Options
}

func spendAtOnce(b gateway) {
	var calls sync.WaitGroup
	var used atomic.Int64
	for range 50 {
		calls.Go(func() {
			bill, _, err := b.Open(background, "s", 133)
			b.is(err, nil)
			if bill != nil {
				used.Add(133)
				b.is(bill.Settle(background, 133), nil)
			}
		})
	}
	calls.Wait()
	if n := used.Load(); n != 7*133 {
		b.Errorf("%d of 1000 tokens are spent, want 931", n)
	}
	b.left(1000 - 7*133)
}

func chargeAllTokens(b gateway) {
	rule := core.Rule{Name: "tokens", Limit: core.PerDay(1000), Estimate: cost(1)}
	guard := newGuard(b.T, b.limiter, rule)
	wantSettled(b.T, guard, "tokens", 150, nil)
	wantLeft(b.T, b.limiter, "tokens", me, core.PerDay(1000), 850)
	bill := b.open(1)
	b.is(bill.Settle(background, 150), nil)
	b.left(850)
}

func answerAboveTheLimit(b gateway) {
	_, err := b.Charge(background, "s", 1200)
	b.is(err, nil)
	if bill, d, err := b.Open(background, "s", 1); bill != nil || err != nil || d.RetryAfter <= 24*time.Hour/10 {
		b.Errorf("%+v, %v", d, err)
	}
}

func chooseTheEstimate(b gateway) {
	b.is(b.open(1).Settle(background, 400), nil)
	b.is(b.open(600).Settle(background, 100), nil)
	b.left(500)
}

func headersAfterSettling(b gateway) {
	guard := newGuard(b.T, b.limiter, estimating("tokens", core.PerDay(1000), 100))
	wantSettled(b.T, guard, "tokens", 700, nil)
	v := newView("GET", "/")
	wantStatus(b.T, guard, v, ok)
	if got := v.Response.Get("RateLimit"); !strings.Contains(got, ";r=200;") {
		b.Errorf("%v, want 200 left", v.Response)
	}
}

func weighCachedTokens(b gateway) {
	input, cached, output := 100, 400, 20
	b.is(b.open(520).Settle(background, input+cached/10+output), nil)
	b.left(840)
}

func holdUntilSettled(b gateway) {
	guard := newGuard(b.T, b.limiter, estimating("tokens", core.PerDay(1000), 800))
	v := newView("GET", "/")
	ctx, hangUp := context.WithCancel(background)
	v.Ctx = ctx
	answer := wantStatus(b.T, guard, v, ok)
	answer.Run(func() int {
		hangUp()
		wantLeft(b.T, b.limiter, "tokens", me, core.PerDay(1000), 200)
		b.is(core.Settle(answer.Context, core.Costs{"tokens": 300}), nil)
		return ok
	})
	wantLeft(b.T, b.limiter, "tokens", me, core.PerDay(1000), 700)
}

func unreadableUsage(b gateway) {
	guard := newGuard(b.T, b.limiter, estimating("tokens", core.PerDay(1000), 100))
	_ = handled(b.T, guard, func(context.Context) error { return errors.New("no usage in the last line") })
	wantLeft(b.T, b.limiter, "tokens", me, core.PerDay(1000), 900)
}

func monthlyBudget(b gateway) {
	const dollar = 1_000_000
	budget := billing{b.T, b.limiter.MustCounter("budget", core.PerCalendarMonth(50*dollar, "UTC"))}
	budget.is(budget.open(10*dollar).Settle(background, 49_999_999), nil)
	budget.left(1)
	_, d, err := budget.Open(background, "s", 2)
	budget.is(err, nil)
	now := time.Now().UTC()
	if next := time.Date(now.Year(), now.Month()+1, 1, 0, 0, 0, 0, time.UTC); !d.Allowed && time.Until(next) > time.Hour && d.RetryAfter < time.Until(next)-time.Hour {
		b.Errorf("it passes after %v, want at the end of the month", d.RetryAfter)
	}
}

func limitOfEachLevel(b gateway) {
	by := func(subject string) core.KeyFunc { return func(core.Request) (string, error) { return subject, nil } }
	var rules []core.Rule
	for _, level := range []struct {
		name string
		max  int
	}{{"user", 1000}, {"team", 800}, {"organization", 500}} {
		rule := estimating(level.name, core.PerDay(level.max), 1)
		rule.Key = by(level.name)
		rules = append(rules, rule)
	}
	check := b.limiter.MustCheck(rules...)
	for i, want := range []int{200, 429} { // the second one exceeds the last level only
		ctx, err := check.WithEstimates(background, map[string]int{"user": 300, "team": 300, "organization": 300})
		b.is(err, nil)
		if got := status(check.Allow(newView("GET", "/").In(ctx), "")); got != want {
			b.Errorf("call %d: status %d, want %d", i, got, want)
		}
	}
	for _, rule := range rules {
		eventually(b.T, rule.Name+" is charged once", func() bool { // another server may have charged it, and gives that back
			d, err := b.limiter.MustCounter(rule.Name, rule.Limit).Peek(background, rule.Name)
			return err == nil && d.Remaining == rule.Limit.Max-300
		})
	}
}

func settleElsewhere(b gateway) {
	bill := b.open(400)
	elsewhere := b.options
	elsewhere.Prefix += "other:"
	for _, options := range []core.Options{{}, elsewhere} {
		other := newLimiter(b.T, options).MustCounter("tokens", core.PerDay(1000))
		resumed, err := other.Resume(bill.Token())
		b.is(err, nil)
		b.is(resumed.Settle(background, 0), core.ErrBillUnknown)
		b.is(resumed.Add(background, 5), core.ErrBillUnknown)
	}
	b.left(600)
	b.is(bill.Settle(background, 100), nil)
	b.left(900)
}
