package core_test

import (
	"strings"
	"testing"
	"time"

	"github.com/accesslimit/accesslimit/core"
)

// A caller reads the wait in the units that people use, and never one that is too short.
func TestMessagesNameTheWait(t *testing.T) {
	const day = 24 * time.Hour
	for wait, want := range map[time.Duration]string{
		time.Microsecond: "1 s", 12 * time.Second: "12 s", 59 * time.Second: "59 s", 59*time.Second + 1000: "1 min", time.Minute: "1 min",
		90 * time.Second: "1 min 30 s", time.Hour - time.Second: "59 min 59 s", time.Hour: "1 h", time.Hour + time.Second: "1 h 1 min",
		69_126 * time.Second: "19 h 13 min", day - time.Minute: "23 h 59 min", day - time.Second: "1 day", day: "1 day",
		day + time.Second: "1 day 1 h", 2*day - time.Hour: "1 day 23 h", 2*day - time.Second: "2 days", 51 * time.Hour: "2 days 3 h", 366 * day: "366 days",
	} {
		rule := core.Rule{Name: "n", Seconds: 60, MaxCount: 5}
		refusal, _ := refused(t, core.Options{}, wait, rule)
		if want := "Rate limit of 5 per minute exceeded. Try again in " + want + "."; refusal.Message != want || !strings.Contains(string(refusal.Body), want) {
			t.Errorf("%v: %s, want %s", wait, refusal.Body, want)
		}
	}
}

// Permits that are left, but too few for the call, are not said to be exceeded.
func TestMessageOfACallThatCostsMoreThanIsLeft(t *testing.T) {
	limiter, _ := atTestTime(t, core.Options{})
	guard := newGuard(t, limiter, core.Rule{Name: "n", Limit: core.PerMinute(5).Fixed(), Cost: cost(3)})
	wantStatus(t, guard, newView("GET", "/"), 200)
	want := "Rate limit of 5 per minute leaves too little for this call. Try again in 1 min."
	if got := wantStatus(t, guard, newView("GET", "/"), 429).Refusal.Message; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// A caller reads the limit in words.
func TestMessagesNameTheLimit(t *testing.T) {
	for want, limit := range map[string]core.Limit{
		"5 per second": core.PerSecond(5), "5 per minute": core.PerMinute(5), "5 per hour": core.PerHour(5), "5 per day": core.PerDay(5),
		"5 per 10 seconds": {Max: 5, Window: 10 * time.Second}, "5 per 90 minutes": {Max: 5, Window: 90 * time.Minute},
		"5 per 36 hours": {Max: 5, Window: 36 * time.Hour}, "5 per 250ms": {Max: 5, Window: 250 * time.Millisecond},
		"5 per 1.5s": {Max: 5, Window: 1500 * time.Millisecond}, "5 per calendar month": core.PerCalendarMonth(5, "UTC"),
		"5 per minute, at most 9 at once": core.PerMinute(5).Bucket(9),
	} {
		rule := core.Rule{Name: "n", Limit: core.Limit{Max: 5, Calendar: limit.Calendar, Window: limit.Window, Algorithm: limit.Algorithm, Burst: limit.Burst}}
		refusal, _ := refused(t, core.Options{}, time.Second, rule)
		if want := "Rate limit of " + want + " exceeded. Try again in 1 s."; refusal.Message != want {
			t.Errorf("%q, want %q", refusal.Message, want)
		}
	}
	for most, want := range map[int]string{1: "Limit of 1 call at once reached.", 3: "Limit of 3 calls at once reached."} {
		refusal, _ := refused(t, core.Options{}, time.Second, core.Rule{Name: "n", Limit: core.InFlight(most)})
		if want += " Try again when another call has ended, or in 1 s."; refusal.Message != want {
			t.Errorf("%q, want %q", refusal.Message, want)
		}
	}
}
