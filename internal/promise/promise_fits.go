package promise

import (
	"context"
	"errors"
	"math"
	"net/http"
	"testing"
	"time"

	"github.com/accesslimit/accesslimit/core"
)

// NothingFitsIsAnError: a cost that can never fit is an error and not a refusal, and so is an
// invalid limit or call. None of them is charged. A cost of nothing always fits.
func NothingFitsIsAnError(t *testing.T, e Engine) {
	options := e.Options(t)
	limiter := newLimiter(t, options)
	ctx := context.Background()
	for _, l := range limits() {
		t.Run(l.name, func(t *testing.T) {
			c := counter{t: t, limiter: limiter, prefix: options.Prefix, name: "name", subject: t.Name(), limit: l.Limit}
			for _, n := range []int{atOnce(l.Limit) + 1, math.MaxInt} {
				if d, err := limiter.MustCounter(c.name, l.Limit).AllowN(ctx, c.subject, n); !errors.Is(err, core.ErrCostExceedsLimit) || !isZero(d) {
					t.Errorf("%d permits: %+v, %v; want %v", n, d, err, core.ErrCostExceedsLimit)
				}
			}
			wantRuleError(t, "n", func() (core.Decision, error) { return limiter.MustCounter(c.name, l.Limit).AllowN(ctx, c.subject, -1) })
			wantRuleError(t, "name", func() (d core.Decision, err error) {
				_, err = limiter.Counter("", l.Limit)
				return d, err
			})
			wantRuleError(t, "subject", func() (core.Decision, error) { return limiter.MustCounter(c.name, l.Limit).Allow(ctx, "") })
			for field, wrong := range nonsense(l.Limit) {
				for _, limit := range wrong {
					wantRuleError(t, field, func() (d core.Decision, err error) {
						_, err = limiter.Counter(c.name, limit)
						return d, err
					})
					wantRuleError(t, field, func() (core.Decision, error) {
						return limiter.MustCounter(c.name, l.Limit).With(limit).Allow(ctx, c.subject)
					})
					wantRuleError(t, field, func() (core.Decision, error) {
						return limiter.MustCounter(c.name, l.Limit).With(limit).Peek(ctx, c.subject)
					})
					wantRuleError(t, field, func() (d core.Decision, err error) {
						_, err = limiter.MustCounter(c.name, l.Limit).With(limit).Reset(ctx, c.subject)
						return d, err
					})
				}
			}
			c.mustTake(0)
			if d := c.peek(); d.Remaining != atOnce(l.Limit) || d.ResetAfter != 0 {
				t.Errorf("errors and calls for nothing were charged: %+v", d)
			}
			c.mustTake(atOnce(l.Limit))
			if d := c.take(0); !d.Allowed || d.RetryAfter != 0 {
				t.Errorf("nothing does not fit into a limit that is used up: %+v", d)
			}
		})
	}
	t.Run("in a guard", func(t *testing.T) { tooHeavyForAGuard(t, e) })
}

// tooMany returns numbers above the largest Max, none if an int has 32 bits.
func tooMany() []int {
	if mostPermits+1 == math.MaxInt {
		return nil
	}
	return []int{mostPermits + 1, math.MaxInt}
}

// nonsense returns invalid limits, by the field that is wrong.
func nonsense(l core.Limit) map[string][]core.Limit {
	with := func(change func(*core.Limit)) core.Limit {
		changed := l
		change(&changed)
		return changed
	}
	wrong := make(map[string][]core.Limit)
	for _, n := range append(tooMany(), 0, -1, math.MinInt) {
		wrong["Max"] = append(wrong["Max"], with(func(l *core.Limit) { l.Max = n }))
	}
	for _, d := range []time.Duration{0, -time.Second, 999 * time.Microsecond, time.Second + 1, 367 * 24 * time.Hour, 1<<63 - 1} {
		wrong["Window"] = append(wrong["Window"], with(func(l *core.Limit) { l.Window = d }))
	}
	for _, n := range append(tooMany(), -1) { // without a bucket, any Burst is wrong
		wrong["Burst"] = append(wrong["Burst"], with(func(l *core.Limit) { l.Burst = n }))
	}
	wrong["Algorithm"] = []core.Limit{with(func(l *core.Limit) { l.Algorithm = 200 })}
	return wrong
}

func isZero(d core.Decision) bool { return sameDecision(d, core.Decision{}) == nil }

// wantRuleError checks that an error names the field that is wrong.
func wantRuleError(t *testing.T, field string, call func() (core.Decision, error)) {
	t.Helper()
	d, err := call()
	if wrong, ok := errors.AsType[*core.RuleError](err); !ok || wrong.Field != field || !isZero(d) {
		t.Errorf("%+v, %v; want a RuleError about %s", d, err, field)
	}
}

// tooHeavyForAGuard: such a call is the caller's mistake, and no rule is charged.
func tooHeavyForAGuard(t *testing.T, e Engine) {
	eachAlgorithm(t, func(t *testing.T, f facts) {
		light, heavy := ruleOf("light", f.lasting(5)), ruleOf("heavy", f.lasting(50))
		light.Cost, heavy.Cost = weigh, weigh
		guard := watchGuard(t, e.Options(t), heavy, light)
		v := callBy(context.Background(), "caller")
		v.Values[weight] = 6
		if got := status(guard.Check(v)); got != http.StatusBadRequest || guard.last.Reason != core.CostTooHigh {
			t.Errorf("status %d, want %d: %+v", got, http.StatusBadRequest, guard.last)
		}
		counter{t: t, limiter: guard.limiter, name: "light", subject: subjectOf("caller"), limit: f.lasting(5)}.wantLeft(5)
		counter{t: t, limiter: guard.limiter, name: "heavy", subject: subjectOf("caller"), limit: f.lasting(50)}.wantLeft(50)
	})
}
