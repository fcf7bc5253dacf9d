package algorithm_test

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/accesslimit/accesslimit/core/internal/algorithm"
)

// A share is this part of the limit, rounded up to whole permits. Errors of floating point are not
// rounded up.
func TestShare(t *testing.T) {
	for _, test := range []struct {
		most int64
		part float64
		want int64
	}{
		{30, 0.1, 3}, {10, 0.1, 1}, {10, 0.11, 2}, {1, 0.001, 1}, {7, 1, 7}, {3, 1. / 3, 1}, {1_000_000_000_000, 0.7, 700_000_000_000},
	} {
		for _, kind := range []algorithm.Kind{algorithm.SlidingWindow, algorithm.SlidingLog, algorithm.FixedWindow, algorithm.CalendarWindow, algorithm.Concurrency} {
			whole := algorithm.Windowed(kind, test.most, 1_000_000)
			want := algorithm.Windowed(kind, test.want, 1_000_000)
			if got, err := whole.Share(test.part); err != nil || !got.Equal(&want) {
				t.Errorf("%v of %d: %+v, %v", test.part, test.most, got, err)
			}
		}
	}
	whole := algorithm.PauseLimit
	if got, err := whole.Share(0.1); err != nil || !got.Equal(&whole) {
		t.Errorf("%+v of a pause, %v", got, err)
	}
}

// A share of a bucket has the share of its rate and of its size, in the same window.
func TestShareOfABucket(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rate, burst := rapid.Int64Range(1, 1_000_000).Draw(t, "rate"), rapid.Int64Range(1, 1_000_000).Draw(t, "burst")
		window := rapid.SampledFrom([]int64{1_000_000, 60_000_000, 999_983, 3_600_000_000, 86_400_000_000}).Draw(t, "window")
		percent := rapid.Int64Range(1, 100).Draw(t, "percent")
		whole, err := algorithm.Bucketed(rate, window, burst)
		if err != nil {
			return // no limit at all
		}
		part := func(n int64) int64 { return (n*percent + 99) / 100 }
		want, tooLarge := algorithm.Bucketed(part(rate), window, part(burst))
		if got, err := whole.Share(float64(percent) / 100); err != tooLarge || err == nil && !got.Equal(&want) {
			t.Errorf("%d%% of %d in %d, at most %d: %+v, %v; want %+v, %v", percent, rate, window, burst, got, err, want, tooLarge)
		}
	})
}
