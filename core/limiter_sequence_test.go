package core_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/accesslimit/accesslimit/core"
)

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
					if i == 4 && source == core.FromRedis { // as the call before it was refused
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
						t.Errorf("OnDecision heard %+v of %+v", last, d)
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

// By a clock of the test's own, to the microsecond.
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
		if keys := options.Redis.Keys(context.Background(), "*").Val(); len(keys) > 0 {
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
