package algorithm_test

import (
	"testing"

	"github.com/accesslimit/accesslimit/core/internal/algorithm"
)

// Raising and lowering a limit takes effect at once and keeps what was used.
func TestLimitChanges(t *testing.T) {
	sliding := func(most int64) algorithm.Limit { return algorithm.Windowed(algorithm.SlidingWindow, most, second) }
	fixed := func(most int64) algorithm.Limit { return algorithm.Windowed(algorithm.FixedWindow, most, second) }
	bucketOf := func(most int64) algorithm.Limit { return bucket(t, most, second, most) }
	for name, of := range map[string]func(int64) algorithm.Limit{"sliding window": sliding, "fixed window": fixed, "bucket": bucketOf} {
		t.Run(name, func(t *testing.T) {
			c := counter{limit: of(10)}
			c.decide(early, 8)
			for _, step := range []struct{ most, remaining int64 }{{100, 92}, {9, 1}, {3, 0}, {8, 0}, {10, 2}, {600_000, 599_992}} {
				c.limit = of(step.most)
				if v := c.look(early, 1); v.Remaining != step.remaining {
					t.Errorf("8 used, now at most %d: %d left, want %d", step.most, v.Remaining, step.remaining)
				}
				wantHonest(t, &c, early, 1, c.look(early, 1))
			}
		})
	}
}

// Refused calls at another rate, which counts in coarser units, leave no roundings behind.
func TestBucketAskedAtTwoRatesRefills(t *testing.T) {
	one, other := bucket(t, 7, second, 7), bucket(t, 8, second, 7)
	asked, left := counter{limit: one}, counter{limit: one}
	asked.decide(early, 7)
	left.decide(early, 7)
	const after = early + 20*millisecond
	for now := int64(early); now < after; now++ {
		asked.limit = other
		asked.decide(now, 7)
		asked.limit = one
		asked.decide(now, 7)
	}
	if got, want := asked.look(after, 1), left.look(after, 1); got != want {
		t.Errorf("refused at two rates for 20 ms: %+v, left alone: %+v", got, want)
	}
}

// A wait is told in a time.Duration, 292 years at most, whatever the limits were that followed each other.
func TestLoweredBucketWaitFitsADuration(t *testing.T) {
	const longest = 292 * 365 * day
	for _, tc := range []struct {
		name            string
		before, lowered algorithm.Limit
	}{
		{"another unit", bucket(t, 1_000_000, day, 1_000_000), bucket(t, 1, day, 1)},
		{"the same unit", bucket(t, 100_003, 7*hour, 50_000_000), bucket(t, 1, 7*hour, 1)},
	} {
		c := counter{limit: tc.before}
		c.decide(early, tc.before.Max)
		c.limit = tc.lowered
		if v := c.look(early, 1); v.RetryAfter <= 0 || v.RetryAfter > longest || v.ResetAfter > longest {
			t.Errorf("%s: %+v, no wait may be over %d", tc.name, v, int64(longest))
		}
	}
}
