package core_test

import (
	"testing"
	"time"

	"github.com/accesslimit/accesslimit/core"
)

// date is a moment by the clocks of a zone.
func date(t testing.TB, zone string, year int, month time.Month, day, hour, minute int) time.Time {
	t.Helper()
	location, err := time.LoadLocation(zone)
	if err != nil {
		t.Fatal(err)
	}
	return time.Date(year, month, day, hour, minute, 0, 0, location)
}

// A day ends when it does by the clocks of its zone, though it has 23 or 25 hours; so does a month.
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
			clock.add(-test.lasts - time.Microsecond) // the day before, by a clock that stepped back, mints nothing
			wantLeft(t, limiter, "n", "s", test.limit, 0)
		})
	}
}

// Windows are aligned to the epoch, whenever the first call comes.
func TestCalendarWindowOfASpan(t *testing.T) {
	limiter, clock := atTestTime(t, core.Options{})
	hours := core.Limit{Max: 2, Window: 7 * time.Hour, Algorithm: core.CalendarWindow} // 480,000 h are 3 h into the 68,572nd
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

// A rule's counter is that of the limit which says the same, however it is spelled; other spans and
// zones are others.
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
