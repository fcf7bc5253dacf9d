package core_test

import (
	"testing"
	"time"

	"github.com/accesslimit/accesslimit/core"
)

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
