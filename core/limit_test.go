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

// Limiters divided the window into whole microseconds per permit. At 600,000 a second, a permit
// came back every microsecond, which is a million a second.
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

// A time in seconds, as a floating-point number, had become too large to add fractions to. Since
// 2025, the first of ten calls a second left eight, and later dates affect other rates.
func TestFirstCallOfTenLeavesNine(t *testing.T) {
	// In 2065, 2041, 2084, and at the end of 2099.
	dates := []int64{in2065, 1 << 51, 3_600_000_000_000_000, 4_102_444_799_999_999}
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

// A limit of zero, or one that was not set, let everybody through, divided by zero, or took Redis
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

// With very large numbers the arithmetic overflowed, and nothing was limited.
func TestLargestNumbersLimit(t *testing.T) {
	const most, longest = mostPermits, 366 * 24 * time.Hour
	onBothClocks(t, func(t *testing.T, limiter *core.Limiter, now *wallClock) {
		for _, limit := range []core.Limit{
			{Max: most, Window: longest}, {Max: most, Window: time.Millisecond}, {Max: 10_000, Window: longest, Algorithm: core.SlidingLog},
			{Max: most, Window: longest, Algorithm: core.FixedWindow}, {Max: most, Window: longest, Algorithm: core.CalendarWindow},
			core.PerCalendarMonth(most, "Pacific/Auckland"),
			{Max: most, Window: time.Millisecond, Algorithm: core.TokenBucket}, {Max: 1, Window: longest, Algorithm: core.TokenBucket, Burst: 70},
		} {
			size := max(limit.Max, limit.Burst) // only the largest limit has a Burst
			if d := took(t, limiter, limit, size-1); d.Remaining != 1 {
				t.Errorf("%v: %d left of all but one", limit, d.Remaining)
			}
			took(t, limiter, limit, 1)
			tookNone(t, limiter, limit, 1)
			tookNone(t, limiter, limit, size)
		}
	})
}

// With a log of 70,000 calls a day, the search for one caller stalled the whole server.
func TestLogOfSeventyThousandIsRefused(t *testing.T) {
	limiter := newLimiter(t, core.Options{})
	var wrong *core.RuleError
	if _, err := limiter.Guard(core.Rule{Limit: core.Limit{Max: 70_000, Window: 86_400 * time.Second}.Log()}); !errors.As(err, &wrong) {
		t.Errorf("a log of 70,000 calls: %v", err)
	}
}

// A false in Lua arrives as nil, which was taken for an error, for zero permits, or for an
// allowance. So every answer has all its numbers.
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

// withMax returns the same limit with another Max, and a bucket with another rate and size.
func withMax(limit core.Limit, permits int) core.Limit {
	limit.Max = permits
	return limit
}

// When a limit was raised from ten to a hundred, the stored use was read as ten times as much, so
// the raise refused everybody.
func TestRaisedLimitDoesNotReadOldStateAsMore(t *testing.T) {
	eachAlgorithm(t, 10, func(t *testing.T, limiter *core.Limiter, _ *wallClock, limit core.Limit) {
		took(t, limiter, limit, 8)
		for _, raised := range []int{11, 97, 100, 9_999} {
			remains(t, limiter, withMax(limit, raised), raised-8)
		}
		took(t, limiter, withMax(limit, 100), 92)
		tookNone(t, limiter, withMax(limit, 100), 1)
	})
}

// After a rate was raised, callers were refused until the old use had drained at the old rate.
func TestRaisedRateTakesEffectAtOnce(t *testing.T) {
	eachAlgorithm(t, 10, func(t *testing.T, limiter *core.Limiter, now *wallClock, limit core.Limit) {
		took(t, limiter, limit, 10)
		tookNone(t, limiter, limit, 1)
		raised := withMax(limit, 60)
		took(t, limiter, raised, 50)
		tookNone(t, limiter, raised, 1)
		if limit.Algorithm == core.TokenBucket { // it refills at the new rate
			now.pass(10 * time.Second)
			remains(t, limiter, raised, 10)
		}
	})
}

// A lowered limit held for new keys only. Existing callers kept the old one.
func TestLoweredLimitHoldsForOldKeys(t *testing.T) {
	eachAlgorithm(t, 10, func(t *testing.T, limiter *core.Limiter, now *wallClock, limit core.Limit) {
		took(t, limiter, limit, 6)
		for _, lowered := range []int{6, 5, 1} {
			remains(t, limiter, withMax(limit, lowered), 0)
			tookNone(t, limiter, withMax(limit, lowered), 1)
		}
		remains(t, limiter, limit, 4) // what was used is kept, when it is raised again
		now.pass(6*time.Minute + time.Minute/32)
		took(t, limiter, withMax(limit, 1), 1)
	})
}

// Processes of two releases had different limits. The first to be asked decided for all, or each
// change granted a full limit anew. A slower bucket does not count calls of a faster one: it holds
// for its own calls, and the faster one for all.
func TestProcessesWithDifferentLimitsMintNothing(t *testing.T) {
	eachAlgorithm(t, 10, func(t *testing.T, limiter *core.Limiter, _ *wallClock, limit core.Limit) {
		old, admitted, byOld := withMax(limit, 4), 0, 0
		for range 30 {
			for _, of := range []core.Limit{old, limit} {
				d, err := limiter.MustCounter("n", of).Allow(background, "user:a")
				if err != nil {
					t.Fatal(err)
				}
				if d.Allowed {
					admitted++
				}
				if d.Allowed && of == old {
					byOld++
				}
				counted := admitted
				if of == old && of.Algorithm == core.TokenBucket {
					counted = byOld
				}
				if want := counted <= of.Max && d.Allowed || counted >= of.Max && !d.Allowed; !want {
					t.Fatalf("call after %d by %v: %+v", admitted, of, d)
				}
			}
		}
		if admitted != 10 {
			t.Errorf("%d admitted at one moment by limits of 4 and 10", admitted)
		}
	})
}

// date returns a moment by the clocks of a zone.
func date(t testing.TB, zone string, year int, month time.Month, day, hour, minute int) time.Time {
	t.Helper()
	location, err := time.LoadLocation(zone)
	if err != nil {
		t.Fatal(err)
	}
	return time.Date(year, month, day, hour, minute, 0, 0, location)
}

// A day or a month ends by the clocks of its zone, even if a day has 23 or 25 hours.
func TestDaysAndMonthsOfZones(t *testing.T) {
	day, month := core.PerCalendarDay, core.PerCalendarMonth
	for _, test := range []struct {
		name  string
		limit core.Limit
		zone  string
		month time.Month // of 2024
		day   int
		lasts time.Duration
	}{
		{"UTC", day(2, "UTC"), "UTC", 10, 4, 24 * time.Hour},
		{"Berlin", day(2, "Europe/Berlin"), "Europe/Berlin", 7, 4, 24 * time.Hour},
		{"Berlin, clocks put forward", day(2, "Europe/Berlin"), "Europe/Berlin", 3, 31, 23 * time.Hour},
		{"Berlin, clocks put back", day(2, "Europe/Berlin"), "Europe/Berlin", 10, 27, 25 * time.Hour},
		{"Kathmandu", day(2, "Asia/Kathmandu"), "Asia/Kathmandu", 1, 1, 24 * time.Hour},
		{"Lord Howe, by half an hour", day(2, "Australia/Lord_Howe"), "Australia/Lord_Howe", 10, 6, 24*time.Hour - 30*time.Minute},
		{"February of a leap year", month(2, "UTC"), "UTC", 2, 1, 29 * 24 * time.Hour},
		{"March, clocks put forward", month(2, "Europe/Berlin"), "Europe/Berlin", 3, 1, 31*24*time.Hour - time.Hour},
		{"New York's November", month(2, "America/New_York"), "America/New_York", 11, 1, 30*24*time.Hour + time.Hour},
	} {
		t.Run(test.name, func(t *testing.T) {
			limiter, clock := atTestTime(t, core.Options{})
			clock.now.Store(date(t, test.zone, 2024, test.month, test.day, 0, 0).UnixMicro())
			if d := charge(t, limiter, "n", "s", test.limit, 2); d.ResetAfter != test.lasts {
				t.Errorf("%v, want %v", d.ResetAfter, test.lasts)
			}
			clock.add(test.lasts - time.Microsecond)
			if d, _ := limiter.MustCounter("n", test.limit).Allow(background, "s"); d.Allowed || d.RetryAfter != time.Microsecond {
				t.Errorf("at its end: %+v", d)
			}
			clock.add(time.Microsecond)
			wantLeft(t, limiter, "n", "s", test.limit, 2)
			// A clock that steps back to the day before creates no permits.
			clock.add(-test.lasts - time.Microsecond)
			wantLeft(t, limiter, "n", "s", test.limit, 0)
		})
	}
}

// Windows are aligned to the epoch, whenever the first call comes.
func TestCalendarWindowOfASpan(t *testing.T) {
	limiter, clock := atTestTime(t, core.Options{})
	// 480,000 h are 3 h into the 68,572nd window.
	hours := core.Limit{Max: 2, Window: 7 * time.Hour, Algorithm: core.CalendarWindow}
	clock.add(2 * time.Hour)
	if d := charge(t, limiter, "n", "s", hours, 2); d.ResetAfter != 2*time.Hour {
		t.Errorf("%+v", d)
	}
	clock.add(2*time.Hour - time.Microsecond)
	wantLeft(t, limiter, "n", "s", hours, 0)
	clock.add(time.Microsecond)
	if d := charge(t, limiter, "n", "s", hours, 1); d.ResetAfter != 7*time.Hour {
		t.Errorf("%+v", d)
	}
}

func TestCalendarsInRedis(t *testing.T) {
	onBothEngines(t, func(t *testing.T, options core.Options, _ core.Source) {
		limiter := newLimiter(t, options)
		for _, zone := range []string{"UTC", "Europe/Berlin", "Pacific/Kiritimati", "Pacific/Niue", "America/Argentina/ComodRivadavia"} {
			location, err := time.LoadLocation(zone)
			if err != nil {
				t.Fatal(err)
			}
			now := time.Now().In(location)
			end := time.Date(now.Year(), now.Month()+1, 1, 0, 0, 0, 0, location)
			limit := core.PerCalendarMonth(2, zone)
			d := charge(t, limiter, "n", zone, limit, 2)
			if late := time.Until(end) - d.ResetAfter; late > 0 || late < -patient {
				t.Errorf("%s: ends in %v, want %v", zone, d.ResetAfter, time.Until(end))
			}
			if d, err := limiter.MustCounter("n", limit).Allow(background, zone); err != nil || d.Allowed || d.RetryAfter > time.Until(end)+patient {
				t.Errorf("%+v, %v", d, err)
			}
		}
	})
}

// Two spellings of the same limit have one counter. Another span or zone is another counter.
func TestACalendarRuleCountsByItsCalendar(t *testing.T) {
	onBothEngines(t, func(t *testing.T, options core.Options, _ core.Source) {
		limiter := newLimiter(t, options)
		v := newView("GET", "/")
		rule := core.Rule{Name: "n", Limit: core.PerCalendarMonth(3, "America/Argentina/San_Juan")}
		wantServed(t, newGuard(t, limiter, rule), v, ok, 200)
		wantLeft(t, limiter, "n", me, core.PerCalendarMonth(3, "America/Argentina/San_Juan"), 2)
		wantLeft(t, limiter, "n", me, core.Limit{Max: 3, Calendar: rule.Limit.Calendar}, 2)
		wantLeft(t, limiter, "n", me, core.PerCalendarDay(3, "America/Argentina/San_Juan"), 3)
		wantLeft(t, limiter, "n", me, core.PerCalendarMonth(3, "America/Argentina/San_Luis"), 3)
		wantLeft(t, limiter, "n", me, core.Limit{Max: 3, Window: 31 * 24 * time.Hour, Algorithm: core.CalendarWindow}, 3)
		if got := v.response["Ratelimit-Policy"]; got[0] != `"n";q=3;w=2678400` {
			t.Errorf("RateLimit-Policy: %s", got)
		}
	})
}

func TestCalendarsInDirectCalls(t *testing.T) {
	for name, limit := range map[string]core.Limit{
		"unknown": core.PerCalendarDay(1, "Nowhere/City"), "none": core.PerCalendarMonth(1, ""), "this machine's": core.PerCalendarDay(1, "Local"),
		"a path": core.PerCalendarDay(1, "/etc/localtime"), "and a window": {Max: 1, Window: time.Hour, Calendar: core.PerCalendarDay(1, "UTC").Calendar},
		"of a bucket": core.PerCalendarDay(1, "UTC").Bucket(1),
	} {
		t.Run(name, func(t *testing.T) {
			_, err := newLimiter(t, core.Options{}).Counter("n", limit)
			wantRuleError(t, err, "n", "Calendar", "")
		})
	}
}

func TestCalendarsInWords(t *testing.T) {
	for text, want := range map[string]string{
		core.PerCalendarDay(5, "Europe/Berlin").String():                                      "5/day@Europe/Berlin",
		core.PerCalendarMonth(5, "UTC").String():                                              "5/month@UTC",
		core.Calendar{}.String():                                                              "no calendar",
		core.Limit{Max: 2, Window: 90 * time.Minute, Algorithm: core.CalendarWindow}.String(): "2/1h30m aligned",
		core.InFlight(3).String():                                                             "3 at once",
		core.Unlimited.String():                                                               "unlimited",
		core.SlidingLog.String() + core.CalendarWindow.String() + core.Concurrency.String():   "SlidingLogCalendarWindowConcurrency",
		core.PerCalendarDay(5, "UTC").Calendar.String() + core.PerCalendarMonth(5, "Asia/Tokyo").Calendar.String(): "day of UTCmonth of Asia/Tokyo",
	} {
		if text != want {
			t.Errorf("%q, want %q", text, want)
		}
	}
}
