package core_test

import (
	"encoding/json"
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/accesslimit/accesslimit/core"
)

// filledIn returns a limit with its unset fields filled in.
func filledIn(l core.Limit) core.Limit {
	if l.Calendar != (core.Calendar{}) {
		l.Algorithm = core.CalendarWindow
	}
	if l.Algorithm == core.TokenBucket && l.Burst == 0 {
		l.Burst = l.Max
	}
	return l
}

// For every valid limit, parsing its String gives the limit with unset fields filled in.
func FuzzLimitText(f *testing.F) {
	for algorithm := range 8 {
		f.Add(100, int64(time.Second), uint8(algorithm), 0, "")
		f.Add(int(mostPermits), int64(90*time.Minute), uint8(algorithm), 7, "")
		f.Add(10_000, int64(366*24*time.Hour), uint8(algorithm), 0, "Europe/Berlin")
		f.Add(1, int64(1001*time.Microsecond), uint8(algorithm), -1, "-UTC")
		f.Add(3, int64(30*time.Second), uint8(algorithm), 0, "-America/Argentina/ComodRivadavia")
		f.Add(3, int64(100*time.Hour), uint8(algorithm), 3, "")
		f.Add(-1, int64(0), uint8(algorithm), 0, "")
	}
	f.Fuzz(func(t *testing.T, most int, window int64, algorithm uint8, burst int, zone string) {
		limit := core.Limit{Max: most, Window: time.Duration(window), Algorithm: core.Algorithm(algorithm), Burst: burst}
		if month, ok := strings.CutPrefix(zone, "-"); ok {
			limit.Window, limit.Calendar = 0, core.PerCalendarMonth(1, month).Calendar
		} else if zone != "" {
			limit.Window, limit.Calendar = 0, core.PerCalendarDay(1, zone).Calendar
		}
		text := limit.String() // never panics, whatever the limit
		if _, err := newLimiter(t, core.Options{}).Guard(core.Rule{Limit: limit}); err != nil && limit != core.Unlimited {
			return
		}
		read, err := core.ParseLimit(text)
		if err != nil || read != filledIn(limit) {
			t.Errorf("%q is read as %#v, %v; want %#v", text, read, err, filledIn(limit))
		}
		var unmarshalled core.Limit
		if text, err := json.Marshal(limit); err != nil || json.Unmarshal(text, &unmarshalled) != nil || unmarshalled != read {
			t.Errorf("%s, %v; want %#v", text, err, read)
		}
	})
}

// A number that an int of 32 bits cannot hold is an error there, which says so.
func TestCountsAboveAnInt(t *testing.T) {
	const text = "10000000000/h"
	limit, err := core.ParseLimit(text)
	if math.MaxInt > 10_000_000_000 {
		if err != nil || limit.String() != text {
			t.Errorf("%v, %v", limit, err)
		}
	} else if err == nil || !strings.Contains(err.Error(), "32 bits is 2147483647") {
		t.Errorf("%v, %v", limit, err)
	}
}

// Malformed text is an error that names it and says what is wrong. Text that can be read is written
// so that it can be read again.
func FuzzParseLimit(f *testing.F) {
	for _, text := range []string{
		"100/s", "5/15m log", "1000/24h fixed", "60/m aligned", "10/s burst 20", "1000/day@UTC", "3/month@Europe/Berlin", "3 at once",
		"3 at once lost after 10s", "unlimited", "5/day", "5/d", "/", "//", "@", "5/@", "5/s burst", "5/s burst -1", "-5/s", "+5/s", "0x5/s", "5_0/s",
		"5/1e3s", "5/9999999h", "5/-1s", "5/.5s", "5/1h1ms1us", "5/1µs", "5 / s", "3 at once lost after", "9999999999999999999 at once", "\xff/s",
		"5/day@UTC log", "5/s@UTC", "5/day@../../etc/passwd", "unlimited 3", "5/s\nlog", " 5/s ", "5/month",
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		limit, err := core.ParseLimit(text)
		if err != nil {
			var wrong *core.RuleError
			if !errors.As(err, &wrong) || wrong.Field != "Limit" || wrong.Value != text || len(wrong.Why) < 10 || limit != (core.Limit{}) {
				t.Errorf("%q: %#v, %v", text, limit, err)
			}
			kept := core.PerHour(7)
			if kept.UnmarshalText([]byte(text)) == nil || kept != core.PerHour(7) {
				t.Errorf("UnmarshalText of %q leaves %v", text, kept)
			}
			return
		}
		if again, err := core.ParseLimit(limit.String()); err != nil || again != limit {
			t.Errorf("%q is read as %#v, written as %q, and read as %#v, %v", text, limit, limit, again, err)
		}
		if _, err := newLimiter(t, core.Options{}).Guard(core.Rule{Limit: limit}); err != nil && limit != core.Unlimited {
			t.Errorf("%q is read as a limit that no rule can have: %v", text, err)
		}
	})
}
