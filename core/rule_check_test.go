package core_test

import (
	"strings"
	"testing"
	"time"

	"github.com/accesslimit/accesslimit/core"
)

func TestRulesTaken(t *testing.T) {
	for name, rule := range map[string]core.Rule{
		"only a span":        {Seconds: 1},
		"a year in seconds":  {Seconds: 366 * 24 * 3600},
		"a year":             {Limit: core.Limit{Max: 5, Window: year}},
		"a millisecond":      {Limit: core.Limit{Max: 5, Window: time.Millisecond}},
		"most calls":         {Seconds: 1, MaxCount: mostPermits},
		"largest bucket":     {Limit: core.PerSecond(1).Bucket(1e9)},
		"every printable":    {Seconds: 1, Name: ` !"#$%&'()*+,-./09:;<=>?@AZ[\]^_az{|}~`},
		"name of 128 bytes":  {Seconds: 1, Name: strings.Repeat("n", 128)},
		"WebDAV":             {Seconds: 1, Methods: []string{"PROPFIND", "X-OWN"}},
		"pattern not ASCII":  {Seconds: 1, Paths: []string{"/größe/**"}},
		"pattern with names": {Seconds: 1, Paths: []string{"/api/{v1,v2}/[a-z]*"}},
		"the root alone":     {Seconds: 1, Paths: []string{"/"}, Except: []string{"/**"}},

		"other spans":                {Seconds: 3600, Also: []core.Limit{core.PerSecond(1), core.PerDay(9), core.PerCalendarDay(9, "UTC"), core.PerCalendarDay(9, "Asia/Tokyo")}},
		"one span, other algorithms": {Seconds: 60, Also: []core.Limit{core.PerMinute(1).Bucket(1), {Max: 9, Window: time.Minute, Algorithm: core.FixedWindow}}},
		"the shortest ban":           {Seconds: 60, Ban: core.Ban{After: 1, For: time.Millisecond}},
		"the longest ban":            {Seconds: 60, Ban: core.Ban{After: 1000, For: year, Max: year}},
		"bans by hand":               {Seconds: 60, Ban: core.Ban{ByHand: true}},
		"the longest log":            {Limit: core.PerMinute(10_000).Log(), Note: note("")},
		"a log beside it":            {Seconds: 60, Also: []core.Limit{{Max: 1, Window: time.Hour, Algorithm: core.SlidingLog}}, Note: note("")},
		"most in flight":             {Limit: core.Limit{Max: 10_000, Window: 1 * time.Second, Algorithm: core.Concurrency}},
		"days by name of algorithm":  {Limit: core.Limit{Max: 5, Calendar: core.PerCalendarDay(1, "Europe/Berlin").Calendar, Algorithm: core.CalendarWindow}},
		"each hour":                  {Limit: core.PerHour(5).Aligned()},
		"the longest zone":           {Limit: core.PerCalendarMonth(5, "America/Argentina/ComodRivadavia")},
	} {
		t.Run(name, func(t *testing.T) {
			wantServed(t, newGuard(t, newLimiter(t, core.Options{}), rule), newView("GET", "/api/v1/x"), ok, 200)
		})
	}
}

func noLimit(core.Request) (core.Limit, error) { return core.Limit{}, nil }

// note returns a Note with the same text for every call.
func note(text string) func(core.Request) string { return func(core.Request) string { return text } }
