package core_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/core/internal/algorithm"
)

// eachDirectCall runs a test for every kind of direct call.
func eachDirectCall(t *testing.T, limiter *core.Limiter, ctx context.Context, name, subject string, limit core.Limit, check func(t *testing.T, d core.Decision, err error)) {
	t.Helper()
	calls := map[string]func() (core.Decision, error){
		"Allow": func() (d core.Decision, err error) {
			c, err := limiter.Counter(name, limit)
			if err == nil {
				d, err = c.Allow(ctx, subject)
			}
			return d, err
		},
		"With": func() (d core.Decision, err error) {
			c, err := limiter.Counter(name, core.PerDay(1))
			if err == nil {
				d, err = c.With(limit).AllowN(ctx, subject, 1)
			}
			return d, err
		},
		"Peek": func() (d core.Decision, err error) {
			c, err := limiter.Counter(name, limit)
			if err == nil {
				d, err = c.Peek(ctx, subject)
			}
			return d, err
		},
		"Reset": func() (core.Decision, error) {
			c, err := limiter.Counter(name, limit)
			if err == nil {
				_, err = c.Reset(ctx, subject)
			}
			return core.Decision{}, err
		},
	}
	for call, do := range calls {
		t.Run(call, func(t *testing.T) {
			d, err := do()
			check(t, d, err)
			if d.Allowed || d.Reason != "" || d.Source != "" || d.Limit != (core.Limit{}) || d.Key != "" || d.Rule != "" {
				t.Errorf("the decision beside an error is %+v, want the zero one", d)
			}
		})
	}
}

func TestWrongDirectCalls(t *testing.T) {
	good := core.PerHour(5)
	for _, test := range []struct {
		name              string
		counter, subject  string
		limit             core.Limit
		rule, field, told string
	}{
		{"no name", "", "user:a", good, "", "name", ""},
		{"no subject", "reply", "", good, "reply", "subject", ""},
		{"zero limit", "reply", "user:a", core.Limit{}, "reply", "Max", "0"},
		{"limit without a span", "reply", "user:a", core.Limit{Max: 1}, "reply", "Window", "0s"},
		{"negative Max", "reply", "user:a", core.PerHour(-1), "reply", "Max", "-1"},
		{"largest Max", "reply", "user:a", core.PerHour(noMax()), "reply", "Max", fmt.Sprint(noMax())},
		{"largest Window", "reply", "user:a", core.Limit{Max: 1, Window: math.MaxInt64}, "reply", "Window", "2562047h"},
		{"Burst on a window", "reply", "user:a", core.Limit{Max: 1, Window: time.Second, Burst: 1}, "reply", "Burst", "1"},
		{"largest Burst", "reply", "user:a", core.PerSecond(1).Bucket(noMax()), "reply", "Burst", fmt.Sprint(noMax())},
		{"negative Burst", "reply", "user:a", core.PerSecond(1).Bucket(-1), "reply", "Burst", "-1"},
		{"unknown algorithm", "reply", "user:a", core.Limit{Max: 1, Window: time.Second, Algorithm: 9}, "reply", "Algorithm", "Algorithm(9)"},
	} {
		t.Run(test.name, func(t *testing.T) {
			var heard decisions
			limiter := newLimiter(t, core.Options{OnDecision: heard.note})
			eachDirectCall(t, limiter, background, test.counter, test.subject, test.limit, func(t *testing.T, _ core.Decision, err error) {
				wantRuleError(t, err, test.rule, test.field, test.told)
			})
			if len(heard.heard) > 0 {
				t.Errorf("OnDecision received %+v of a call that was wrong", heard.heard)
			}
		})
	}
}

func TestDirectCallsOfAnEndedCaller(t *testing.T) {
	canceled, cancel := context.WithCancel(background)
	cancel()
	late, cancel := context.WithTimeout(background, -1)
	defer cancel()
	onBothEngines(t, func(t *testing.T, options core.Options, _ core.Source) {
		limiter := newLimiter(t, options)
		for ctx, want := range map[context.Context]error{canceled: context.Canceled, late: context.DeadlineExceeded} {
			eachDirectCall(t, limiter, ctx, "n", "s", core.PerHour(5), func(t *testing.T, _ core.Decision, err error) {
				if !errors.Is(err, want) || errors.Is(err, core.ErrStore) {
					t.Errorf("error %v, want %v and no ErrStore", err, want)
				}
			})
		}
		wantLeft(t, limiter, "n", "s", core.PerHour(5), 5)
	})
}

func TestDirectCallsWithoutRedis(t *testing.T) {
	var heard decisions
	options := deadRedis(t)
	options.OnDecision = heard.note
	limiter := newLimiter(t, options)
	eachDirectCall(t, limiter, background, "n", "s", core.PerHour(5), func(t *testing.T, _ core.Decision, err error) {
		if !errors.Is(err, core.ErrStore) {
			t.Errorf("error %v, want ErrStore", err)
		}
		if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) {
			t.Errorf("error %v blames the caller's context for our own timeout", err)
		}
	})
	if len(heard.heard) > 0 {
		t.Errorf("OnDecision received %+v where there was no decision", heard.heard)
	}
}

// A context that ends while the store is asked is an end of the caller's context, too.
func TestDirectCallsWhoseCallerLeaves(t *testing.T) {
	limiter := newLimiter(t, core.Options{})
	core.UseAnswers(limiter, algorithm.Verdict{Ended: context.Canceled})
	if d, err := limiter.MustCounter("n", core.PerHour(5)).Allow(background, "s"); !errors.Is(err, context.Canceled) || errors.Is(err, core.ErrStore) || d.Allowed {
		t.Errorf("%+v, %v", d, err)
	}
}
