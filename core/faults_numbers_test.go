package core_test

import (
	"errors"
	"testing"
	"time"

	"github.com/accesslimit/accesslimit/core"
)

// A comparison with > instead of >= let eleven through where ten are allowed.
func TestElevenIsNotTen(t *testing.T) {
	eachAlgorithm(t, 10, func(t *testing.T, limiter *core.Limiter, _ *wallClock, limit core.Limit) {
		for range 10 {
			took(t, limiter, limit, 1)
		}
		tookNone(t, limiter, limit, 1)
	})
	onBothClocks(t, func(t *testing.T, limiter *core.Limiter, _ *wallClock) {
		for slot := 1; slot <= 11; slot++ {
			if _, d, err := limiter.MustSlots("n", 10).Hold(background, "user:a"); err != nil || d.Allowed != (slot <= 10) {
				t.Errorf("slot %d of 10: %+v, %v", slot, d, err)
			}
		}
	})
}

// Permits were divided into whole microseconds: at 600,000 a second a permit came back every one, a
// million a second.
func TestRateThatIsNoWholeNumberOfMicroseconds(t *testing.T) {
	for _, rate := range []int{600_000, 3, 7, 999_983} {
		onBothClocks(t, func(t *testing.T, limiter *core.Limiter, now *wallClock) {
			bucket := core.PerSecond(rate).Bucket(2_000_000)
			took(t, limiter, bucket, 2_000_000)
			now.pass(time.Second - time.Microsecond)
			remains(t, limiter, bucket, rate-1)
			now.pass(time.Microsecond)
			remains(t, limiter, bucket, rate)
		})
	}
}

// Seconds as a floating-point number had grown too large for what was added to them: since 2025 the
// first of ten calls a second left eight, and each later date spoils other rates.
func TestFirstCallOfTenLeavesNine(t *testing.T) {
	dates := []int64{in2065, 1 << 51, 3_600_000_000_000_000, 4_102_444_799_999_999} // 2065, 2041, 2084, the end of 2099
	onBothClocks(t, func(t *testing.T, limiter *core.Limiter, now *wallClock) {
		for _, date := range dates {
			for _, window := range []time.Duration{time.Second, time.Minute, time.Hour, 24 * time.Hour} {
				for _, rate := range []int{5, 10, 100, 1000, 86_400} {
					bucket := core.Limit{Max: rate, Window: window, Algorithm: core.TokenBucket}
					if _, err := resetOf(limiter, background, "n", "user:a", bucket); err != nil {
						t.Fatal(err)
					}
					now.Store(date)
					if d := took(t, limiter, bucket, 1); d.Remaining != rate-1 {
						t.Errorf("at %v the first call of %v leaves %d", time.UnixMicro(date).UTC(), bucket, d.Remaining)
					}
				}
			}
		}
	})
}

// A limit of nothing, or a forgotten one, let everybody through, divided by zero, or took Redis
// down.
func TestLimitOfNothingIsAnError(t *testing.T) {
	onBothEngines(t, func(t *testing.T, options core.Options, _ core.Source) {
		limiter := newLimiter(t, options)
		for _, limit := range []core.Limit{{}, {Window: time.Second}, {Max: 1}, core.PerSecond(0), core.PerSecond(-5), core.PerSecond(0).Bucket(5)} {
			var wrong *core.RuleError
			if _, err := limiter.Counter("n", limit); !errors.As(err, &wrong) {
				t.Errorf("%#v: %v", limit, err)
			}
			if d, err := limiter.MustCounter("n", core.PerHour(1)).With(limit).Allow(background, "user:a"); !errors.As(err, &wrong) || d.Allowed {
				t.Errorf("%#v: %+v, %v", limit, d, err)
			}
		}
		for _, rule := range []core.Rule{{}, {MaxCount: 5}, {Seconds: -1}, {Seconds: 1, MaxCount: -1}} {
			if _, err := limiter.Guard(rule); err == nil {
				t.Errorf("a guard by %+v", rule)
			}
		}
	})
}

// Large numbers made the limiter do nothing: the arithmetic had overflowed.
func TestLargestNumbersLimit(t *testing.T) {
	const most, longest = mostPermits, 366 * 24 * time.Hour
	onBothClocks(t, func(t *testing.T, limiter *core.Limiter, now *wallClock) {
		for _, limit := range []core.Limit{
			{Max: most, Window: longest}, {Max: most, Window: time.Millisecond}, {Max: 10_000, Window: longest, Algorithm: core.SlidingLog},
			{Max: most, Window: longest, Algorithm: core.FixedWindow}, {Max: most, Window: longest, Algorithm: core.CalendarWindow},
			core.PerCalendarMonth(most, "Pacific/Auckland"),
			{Max: most, Window: time.Millisecond, Algorithm: core.TokenBucket}, {Max: 1, Window: longest, Algorithm: core.TokenBucket, Burst: 70},
		} {
			size := max(limit.Max, limit.Burst) // the only Burst here is the larger
			if d := took(t, limiter, limit, size-1); d.Remaining != 1 {
				t.Errorf("%v: %d left of all but one", limit, d.Remaining)
			}
			took(t, limiter, limit, 1)
			tookNone(t, limiter, limit, 1)
			tookNone(t, limiter, limit, size)
		}
	})
}

// A log of 70,000 calls a day stalled the whole server while one caller's was searched.
func TestLogOfSeventyThousandIsRefused(t *testing.T) {
	limiter := newLimiter(t, core.Options{})
	var wrong *core.RuleError
	if _, err := limiter.Guard(core.Rule{Limit: core.Limit{Max: 70_000, Window: 86_400 * time.Second}.Log()}); !errors.As(err, &wrong) {
		t.Errorf("a log of 70,000 calls: %v", err)
	}
}

// A false in Lua arrives as nil, and was taken for an error, for zero permits, or for a yes. Every
// answer has all its numbers.
func TestRefusalIsAnAnswerNotNil(t *testing.T) {
	eachAlgorithm(t, 2, func(t *testing.T, limiter *core.Limiter, now *wallClock, limit core.Limit) {
		if d, err := peek(limiter, background, "n", "user:a", limit); err != nil || !d.Allowed || d.Remaining != 2 || d.ResetAfter != 0 {
			t.Errorf("nobody called yet: %+v, %v", d, err)
		}
		took(t, limiter, limit, 1)
		now.pass(time.Second)
		if d := tookNone(t, limiter, limit, 2); d.Remaining != 1 || d.ResetAfter <= 0 || d.ResetAfter < d.RetryAfter {
			t.Errorf("refused: %+v", d)
		}
	})
}
