package core_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/core/internal/algorithm"
)

var background = context.Background()

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

func TestAllowNWithWrongNumbers(t *testing.T) {
	bucket := core.PerHour(5).Bucket(8)
	for _, test := range []struct {
		name  string
		limit core.Limit
		n     int
		ok    bool
	}{
		{"all of Max", core.PerHour(5), 5, true},
		{"one more than Max", core.PerHour(5), 6, false},
		{"the largest number", core.PerHour(5), math.MaxInt, false},
		{"all of Burst", bucket, 8, true},
		{"one more than Burst", bucket, 9, false},
		{"Max over a smaller Burst", core.PerHour(5).Bucket(2), 3, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			limiter := newLimiter(t, core.Options{})
			d, err := limiter.MustCounter("n", test.limit).AllowN(background, "s", test.n)
			if test.ok {
				if err != nil || !d.Allowed {
					t.Errorf("%+v, %v", d, err)
				}
				return
			}
			if !errors.Is(err, core.ErrCostExceedsLimit) || d.Allowed || d.Reason != "" {
				t.Errorf("%+v, %v; want the zero Decision and ErrCostExceedsLimit", d, err)
			}
		})
	}
	for _, n := range []int{-1, math.MinInt} {
		_, err := newLimiter(t, core.Options{}).MustCounter("n", core.PerHour(5)).AllowN(background, "s", n)
		wantRuleError(t, err, "n", "n", "-")
	}
}

// Taking no permits is always allowed and charges nothing, whatever was used.
func TestAllowNWithNothing(t *testing.T) {
	onBothEngines(t, func(t *testing.T, options core.Options, _ core.Source) {
		for name, limit := range map[string]core.Limit{
			"sliding": core.PerHour(6), "fixed": {Max: 6, Window: time.Hour, Algorithm: core.FixedWindow}, "bucket": core.PerHour(6).Bucket(6),
		} {
			t.Run(name, func(t *testing.T) {
				limiter := newLimiter(t, options)
				nothing := func(left int, limit core.Limit) {
					t.Helper()
					d, err := limiter.MustCounter(name, limit).AllowN(background, "s", 0)
					if err != nil || !d.Allowed || d.RetryAfter != 0 || d.Remaining != left {
						t.Errorf("%+v, %v; want allowed with %d left", d, err, left)
					}
				}
				nothing(6, limit)
				if _, err := limiter.MustCounter(name, limit).AllowN(background, "s", 6); err != nil {
					t.Fatal(err)
				}
				nothing(0, limit)
				lowered := limit
				lowered.Max, lowered.Burst = 3, min(3, limit.Burst)
				nothing(0, lowered)
			})
		}
	})
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

// The spans are hours, so that nothing comes back while the test runs.
var sequences = map[string]core.Limit{
	"sliding": core.PerHour(3),
	"fixed":   {Max: 3, Window: time.Hour, Algorithm: core.FixedWindow},
	"bucket":  core.PerHour(1).Bucket(3),
}

func TestDecisionsThroughASequence(t *testing.T) {
	onBothEngines(t, func(t *testing.T, options core.Options, source core.Source) {
		for name, limit := range sequences {
			t.Run(name, func(t *testing.T) {
				var heard decisions
				options.OnDecision = heard.note
				limiter := newLimiter(t, options)
				for i, left := range []int{2, 1, 0, 0, 0} {
					source := source
					// The deny cache repeats the refusal of the call before.
					if i == 4 && source == core.FromRedis {
						source = core.FromDenyCache
					}
					before, err := peek(limiter, background, name, "user:a", limit)
					if err != nil {
						t.Fatal(err)
					}
					d, err := limiter.MustCounter(name, limit).Allow(background, "user:a")
					if err != nil {
						t.Fatal(err)
					}
					checkDecision(t, d, name, limit, source, i < 3, left)
					if before.Allowed != d.Allowed || before.Reason != d.Reason || before.Remaining != max(0, 3-i) {
						t.Errorf("Peek before call %d: %+v, then %+v", i, before, d)
					}
					if last := heard.last(t, i+1); last.Remaining != d.Remaining || last.Allowed != d.Allowed {
						t.Errorf("OnDecision received %+v of %+v", last, d)
					}
				}
				wantLeft(t, limiter, name, "user:b", limit, 3)
				wantLeft(t, limiter, "other", "user:a", limit, 3)
			})
		}
	})
}

func checkDecision(t *testing.T, d core.Decision, name string, limit core.Limit, source core.Source, allowed bool, left int) {
	t.Helper()
	longest := limit.Window + limit.Window/32 // a sliding window's last sub-window
	if limit.Algorithm == core.TokenBucket {
		longest = 3 * limit.Window
	}
	reason := core.Allowed
	if !allowed {
		reason = core.LimitExceeded
	}
	if d.Allowed != allowed || d.Reason != reason || d.Remaining != left {
		t.Errorf("allowed %v (%s) with %d left, want %v (%s) with %d", d.Allowed, d.Reason, d.Remaining, allowed, reason, left)
	}
	if d.Rule != name || d.Key != "user:a" || d.Limit != limit || d.Source != source || d.All != nil {
		t.Errorf("rule %q, key %q, limit %v, source %q, all %v", d.Rule, d.Key, d.Limit, d.Source, d.All)
	}
	if d.ResetAfter <= 0 || d.ResetAfter > longest {
		t.Errorf("ResetAfter %v, want up to %v", d.ResetAfter, longest)
	}
	if allowed != (d.RetryAfter == 0) || d.RetryAfter > d.ResetAfter {
		t.Errorf("RetryAfter %v, allowed %v, ResetAfter %v", d.RetryAfter, allowed, d.ResetAfter)
	}
}

// The test controls the clock, so times are exact to the microsecond.
func TestTimesThroughASequence(t *testing.T) {
	const minute, second = int64(60_000_000), int64(1_000_000)
	for _, test := range []struct {
		name                  string
		limit                 core.Limit
		resetFirst, retryLast time.Duration // after 4 calls, 10 s apart, of 3 that pass
	}{
		{"fixed", core.Limit{Max: 3, Window: time.Minute, Algorithm: core.FixedWindow}, time.Minute, 30 * time.Second},
		{"sliding", core.PerMinute(3), time.Minute + 1875*time.Millisecond, 30*time.Second + 1875*time.Millisecond},
		{"bucket", core.PerMinute(1).Bucket(3), time.Minute, 30 * time.Second},
	} {
		t.Run(test.name, func(t *testing.T) {
			limiter := newLimiter(t, core.Options{})
			now := 1000 * minute
			core.UseClock(limiter, func() int64 { return now })
			var last core.Decision
			for i := range int64(4) {
				now = 1000*minute + i*10*second
				d, err := limiter.MustCounter("n", test.limit).Allow(background, "s")
				if err != nil || d.Allowed != (i < 3) {
					t.Fatalf("call %d: %+v, %v", i, d, err)
				}
				if i == 0 && d.ResetAfter != test.resetFirst {
					t.Errorf("ResetAfter of the first call: %v, want %v", d.ResetAfter, test.resetFirst)
				}
				last = d
			}
			if last.RetryAfter != test.retryLast {
				t.Errorf("RetryAfter: %v, want %v", last.RetryAfter, test.retryLast)
			}
			now += last.RetryAfter.Microseconds() - 1
			if d, _ := peek(limiter, background, "n", "s", test.limit); d.Allowed {
				t.Error("allowed a microsecond before RetryAfter was over")
			}
			now++
			if d, _ := peek(limiter, background, "n", "s", test.limit); !d.Allowed {
				t.Error("refused after RetryAfter was waited for")
			}
		})
	}
}

func TestResetStartsAfresh(t *testing.T) {
	onBothEngines(t, func(t *testing.T, options core.Options, _ core.Source) {
		for name, limit := range sequences {
			t.Run(name, func(t *testing.T) {
				limiter := newLimiter(t, options)
				for _, subject := range []string{"user:a", "user:b"} {
					if _, err := limiter.MustCounter(name, limit).AllowN(background, subject, 3); err != nil {
						t.Fatal(err)
					}
				}
				for range 2 { // the second finds nothing to reset
					if _, err := resetOf(limiter, background, name, "user:a", limit); err != nil {
						t.Fatal(err)
					}
				}
				d, err := peek(limiter, background, name, "user:a", limit)
				if err != nil || !d.Allowed || d.Remaining != 3 || d.ResetAfter != 0 {
					t.Errorf("after Reset: %+v, %v", d, err)
				}
				wantLeft(t, limiter, name, "user:b", limit, 0)
			})
		}
	})
}

// Peek must not even write a key: it would outlive a subject that never called.
func TestPeekAndRefusalsWriteNoKey(t *testing.T) {
	onBothEngines(t, func(t *testing.T, options core.Options, _ core.Source) {
		limiter := newLimiter(t, options)
		for _, limit := range sequences {
			if _, err := peek(limiter, background, "n", "s", limit); err != nil {
				t.Fatal(err)
			}
			if _, err := limiter.MustCounter("n", limit).AllowN(background, "s", 0); err != nil {
				t.Fatal(err)
			}
			wantLeft(t, limiter, "n", "s", limit, 3)
		}
		if options.Redis == nil {
			return
		}
		if keys := keysBesideMark(options.Redis); len(keys) > 0 {
			t.Errorf("keys of callers that were never charged: %q", keys)
		}
	})
}

func TestLimitsInWords(t *testing.T) {
	words := []string{
		core.PerSecond(1).String(), core.PerMinute(2).String(), core.PerHour(3).String(), core.PerDay(4).String(),
		core.PerSecond(10).Bucket(20).String(), core.Limit{Max: 1, Window: time.Second, Algorithm: core.TokenBucket}.String(),
		core.SlidingWindow.String(), core.FixedWindow.String(), core.TokenBucket.String(), core.Algorithm(7).String(),
		core.FailOpen.String(), core.FailClosed.String(),
	}
	want := strings.Split("1/s,2/m,3/h,4/24h,10/s burst 20,1/s burst 1,"+
		"SlidingWindow,FixedWindow,TokenBucket,Algorithm(7),fail_open,fail_closed", ",")
	if !slices.Equal(words, want) {
		t.Errorf("%q, want %q", words, want)
	}
}
