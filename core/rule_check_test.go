package core_test

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/accesslimit/accesslimit/core"
)

func TestRulesRefused(t *testing.T) {
	long := strings.Repeat("n", 129)
	year := 366 * 24 * time.Hour
	for _, test := range []struct {
		name  string
		rule  core.Rule
		field string
		value string
	}{
		{"no span", core.Rule{MaxCount: 5}, "Seconds", "0"},
		{"two limits", core.Rule{Seconds: 1, Limit: core.PerSecond(5)}, "Limit", "5/s"},
		{"two limits, one negative", core.Rule{Seconds: -1, Limit: core.PerSecond(5)}, "Limit", "5/s"},
		{"two numbers", core.Rule{MaxCount: 5, Limit: core.PerSecond(5)}, "MaxCount", "5"},
		{"Unlimited", core.Rule{Limit: core.Unlimited}, "Limit", "unlimited"},
		{"plans that nobody has", core.Rule{Seconds: 1, Plans: map[string]core.Limit{"pro": core.PerSecond(9)}}, "Plans", "map[pro:9/s]"},
		{"a plan of none", core.Rule{Seconds: 1, Plan: planOf("pro")}, "Plan", "a function"},
		{"two kinds of plans", core.Rule{Seconds: 1, Plans: map[string]core.Limit{"pro": core.PerSecond(9)}, Plan: planOf("pro"), LimitFor: noLimit}, "LimitFor", "a function"},
		{"a plan without a name", core.Rule{Seconds: 1, Plans: map[string]core.Limit{"": core.PerSecond(9)}, Plan: planOf("")}, "Plans", ""},
		{"a plan that is no limit", core.Rule{Seconds: 1, Plans: map[string]core.Limit{"pro": {}}, Plan: planOf("pro")}, `Plans["pro"]`, "0/0s"},
		{"a share of a plan that cannot be counted", core.Rule{
			Seconds: 1, Plans: map[string]core.Limit{"pro": core.PerDay(100_000_000).Bucket(0)}, Plan: planOf("pro"), OnStoreError: core.CountLocally(1. / 3),
		}, "OnStoreError", "count_locally 0.3333333333333333"},
		{"negative Seconds", core.Rule{Seconds: -1}, "Seconds", "-1"},
		{"most negative Seconds", core.Rule{Seconds: math.MinInt}, "Seconds", fmt.Sprint(math.MinInt)},
		{"largest Seconds", core.Rule{Seconds: math.MaxInt}, "Seconds", fmt.Sprint(math.MaxInt)},
		{"Seconds that overflow a duration to a small one", core.Rule{Seconds: min(18446744074, math.MaxInt)}, "Seconds", fmt.Sprint(min(18446744074, math.MaxInt))},
		{"negative Window", core.Rule{Limit: core.Limit{Max: 5, Window: -time.Second}}, "Limit.Window", "-1s"},
		{"Window under a millisecond", core.Rule{Limit: core.Limit{Max: 5, Window: time.Millisecond - 1}}, "Limit.Window", "999.999µs"},
		{"Window of half microseconds", core.Rule{Limit: core.Limit{Max: 5, Window: time.Second + 500}}, "Limit.Window", "1.0000005s"},
		{"Window over a year", core.Rule{Limit: core.Limit{Max: 5, Window: year + time.Microsecond}}, "Limit.Window", "8784h0m0.000001s"},
		{"largest Window", core.Rule{Limit: core.Limit{Max: 5, Window: math.MaxInt64}}, "Limit.Window", "2562047h"},
		{"negative MaxCount", core.Rule{Seconds: 1, MaxCount: -1}, "MaxCount", "-1"},
		{"most negative MaxCount", core.Rule{Seconds: 1, MaxCount: math.MinInt}, "MaxCount", fmt.Sprint(math.MinInt)},
		{"largest MaxCount", core.Rule{Seconds: 1, MaxCount: noMax()}, "MaxCount", fmt.Sprint(noMax())},
		{"largest MaxCount of a bucket", core.Rule{Limit: core.PerSecond(noMax()).Bucket(0)}, "Limit.Max", fmt.Sprint(noMax())},
		{"negative Burst", core.Rule{Limit: core.PerSecond(5).Bucket(-1)}, "Limit.Burst", "-1"},
		{"largest Burst", core.Rule{Limit: core.PerSecond(5).Bucket(noMax())}, "Limit.Burst", fmt.Sprint(noMax())},
		{"bucket too fine to be exact", core.Rule{Limit: core.Limit{Max: 1, Window: year - time.Microsecond}.Bucket(mostPermits)}, "Limit.Burst", fmt.Sprint(mostPermits)},
		{"Burst on the default algorithm", core.Rule{Limit: core.Limit{Max: 5, Window: time.Second, Burst: 1}}, "Limit.Burst", "1"},
		{"Burst on a fixed window", core.Rule{Limit: core.Limit{Max: 5, Window: time.Second, Algorithm: core.FixedWindow, Burst: 1}}, "Limit.Burst", "1"},
		{"unknown algorithm", core.Rule{Limit: core.Limit{Max: 5, Window: time.Second, Algorithm: 6}}, "Limit.Algorithm", "Algorithm(6)"},
		{"last unknown algorithm", core.Rule{Limit: core.Limit{Max: 5, Window: time.Second, Algorithm: 255}}, "Limit.Algorithm", "Algorithm(255)"},
		{"negative share", core.Rule{Seconds: 1, OnStoreError: core.CountLocally(-0.5)}, "OnStoreError", "count_locally -0.5"},
		{"share above the whole", core.Rule{Seconds: 1, OnStoreError: core.CountLocally(1.5)}, "OnStoreError", "count_locally 1.5"},
		{"share that is no number", core.Rule{Seconds: 1, OnStoreError: core.CountLocally(math.NaN())}, "OnStoreError", "count_locally NaN"},
		{"share that cannot be counted", core.Rule{
			Limit:        core.PerDay(100_000_000).Bucket(0),
			OnStoreError: core.CountLocally(1. / 3),
		}, "OnStoreError", "count_locally 0.3333333333333333"},
		{"NeedLogin without Identify", core.Rule{Seconds: 1, NeedLogin: true}, "NeedLogin", "true"},

		{"Overrides without a name", core.Rule{Seconds: 1, Overrides: true}, "Overrides", "true"},
		{"Overrides with a Lease", core.Rule{Name: "api", Seconds: 1, Lease: 1, Overrides: true}, "Lease", "1"},
		{"Overrides with a plan of another span", core.Rule{
			Name: "api", Seconds: 1, Overrides: true, Plan: func(core.Request) (string, error) { return "", nil },
			Plans: map[string]core.Limit{"free": core.PerSecond(1), "pro": core.PerMinute(1), "staff": core.Unlimited},
		}, `Plans["pro"]`, "1/m"},
		{"negative Lease", core.Rule{Seconds: 1, Lease: -1}, "Lease", "-1"},
		{"Lease over MaxCount", core.Rule{Seconds: 1, MaxCount: 10, Lease: 11}, "Lease", "11"},
		{"Lease over the MaxCount that is unset", core.Rule{Seconds: 1, Lease: 6}, "Lease", "6"},
		{"Lease of a bucket", core.Rule{Limit: core.PerSecond(5).Bucket(0), Lease: 1}, "Lease", "1"},
		{"Lease of a log", core.Rule{Limit: core.PerSecond(5).Log(), Lease: 1}, "Lease", "1"},
		{"Lease of a calendar", core.Rule{Limit: core.PerCalendarDay(5, "UTC"), Lease: 1}, "Lease", "1"},
		{"Lease of slots", core.Rule{Limit: core.Limit{Max: 5, Window: time.Second, Algorithm: core.Concurrency}, Lease: 1}, "Lease", "1"},

		{"name with a line break", core.Rule{Seconds: 1, Name: "a\r\nSet-Cookie: x"}, "Name", "a\r\n"},
		{"name with a NUL", core.Rule{Seconds: 1, Name: "a\x00"}, "Name", "a\x00"},
		{"name with DEL", core.Rule{Seconds: 1, Name: "a\x7f"}, "Name", "a\x7f"},
		{"name beyond ASCII", core.Rule{Seconds: 1, Name: "größe"}, "Name", "größe"},
		{"name of invalid UTF-8", core.Rule{Seconds: 1, Name: "\xff"}, "Name", "\xff"},
		{"name of 129 bytes", core.Rule{Seconds: 1, Name: long}, "Name", long},
		{"name of 200 bytes", core.Rule{Seconds: 1, Name: strings.Repeat("n", 200)}, "Name", long},

		{"path without a slash", core.Rule{Seconds: 1, Paths: []string{"/ok", "limit/**"}}, "Paths", "limit/**"},
		{"empty path", core.Rule{Seconds: 1, Paths: []string{""}}, "Paths", ""},
		{"bad class in a path", core.Rule{Seconds: 1, Paths: []string{"/limit/["}}, "Paths", "/limit/["},
		{"open braces in a path", core.Rule{Seconds: 1, Paths: []string{"/limit/{a,b"}}, "Paths", "/limit/{a,b"},
		{"trailing escape in a path", core.Rule{Seconds: 1, Paths: []string{`/limit\`}}, "Paths", `/limit\`},
		{"exception without a slash", core.Rule{Seconds: 1, Except: []string{"**"}}, "Except", "**"},
		{"bad class in an exception", core.Rule{Seconds: 1, Except: []string{"/ok", "/[a-"}}, "Except", "/[a-"},
		{"method in small letters", core.Rule{Seconds: 1, Methods: []string{"GET", "post"}}, "Methods", "post"},
		{"method in mixed letters", core.Rule{Seconds: 1, Methods: []string{"Get"}}, "Methods", "Get"},
		{"empty method", core.Rule{Seconds: 1, Methods: []string{""}}, "Methods", ""},
		{"two methods in one", core.Rule{Seconds: 1, Methods: []string{"GET POST"}}, "Methods", "GET POST"},
		{"two methods in one, with a comma", core.Rule{Seconds: 1, Methods: []string{"GET,POST"}}, "Methods", "GET,POST"},
	} {
		t.Run(test.name, func(t *testing.T) {
			limiter := newLimiter(t, core.Options{})
			guard, err := limiter.Guard(core.Rule{Name: "sound", Seconds: 1}, test.rule)
			wantRuleError(t, err, test.rule.Name, test.field, test.value)
			if guard != nil {
				t.Error("a guard came with the error")
			}
		})
	}
}

func TestRulesTaken(t *testing.T) {
	for name, rule := range map[string]core.Rule{
		"only a span":        {Seconds: 1},
		"a year in seconds":  {Seconds: 366 * 24 * 3600},
		"a year":             {Limit: core.Limit{Max: 5, Window: 366 * 24 * time.Hour}},
		"a millisecond":      {Limit: core.Limit{Max: 5, Window: time.Millisecond}},
		"most calls":         {Seconds: 1, MaxCount: mostPermits},
		"largest bucket":     {Limit: core.PerSecond(1).Bucket(1e9)},
		"every printable":    {Seconds: 1, Name: ` !"#$%&'()*+,-./09:;<=>?@AZ[\]^_az{|}~`},
		"name of 128 bytes":  {Seconds: 1, Name: strings.Repeat("n", 128)},
		"WebDAV":             {Seconds: 1, Methods: []string{"PROPFIND", "X-OWN"}},
		"pattern not ASCII":  {Seconds: 1, Paths: []string{"/größe/**"}},
		"pattern with names": {Seconds: 1, Paths: []string{"/api/{v1,v2}/[a-z]*"}},
		"the root alone":     {Seconds: 1, Paths: []string{"/"}, Except: []string{"/**"}},
	} {
		t.Run(name, func(t *testing.T) {
			guard := newGuard(t, newLimiter(t, core.Options{}), rule)
			guard.Check(newView("GET", "/api/v1/x"))
		})
	}
}

// The caller keeps its slices. Changing them later changes no rule.
func TestRulesCopyTheirLists(t *testing.T) {
	methods, paths, except := []string{"GET"}, []string{"/a"}, []string{"/b"}
	guard := newGuard(t, newLimiter(t, core.Options{}), core.Rule{Seconds: 60, MaxCount: 1, Methods: methods, Paths: paths, Except: except})
	methods[0], paths[0], except[0] = "POST", "/other", "/a"
	wantStatus(t, guard, newView("GET", "/a"), 200)
	wantStatus(t, guard, newView("GET", "/a"), 429)
}

func TestMaxCountIsFiveUnlessSet(t *testing.T) {
	guard := newGuard(t, newLimiter(t, core.Options{}), core.Rule{Seconds: 3600})
	for range 5 {
		wantStatus(t, guard, newView("GET", "/"), 200)
	}
	wantStatus(t, guard, newView("GET", "/"), 429)
}

func noLimit(core.Request) (core.Limit, error) { return core.Limit{}, nil }

func TestFeaturesRefused(t *testing.T) {
	hour := core.Rule{Name: "n", Seconds: 3600}
	with := func(change func(*core.Rule)) core.Rule {
		rule := hour
		change(&rule)
		return rule
	}
	also := func(limits ...core.Limit) core.Rule { return with(func(r *core.Rule) { r.Also = limits }) }
	ban := func(b core.Ban) core.Rule { return with(func(r *core.Rule) { r.Ban = b }) }
	calendar := func(c core.Calendar, a core.Algorithm) core.Rule {
		return core.Rule{Name: "n", Limit: core.Limit{Max: 5, Calendar: c, Algorithm: a}}
	}
	const year = 366 * 24 * time.Hour
	for _, test := range []struct {
		name               string
		rule               core.Rule
		field, value, says string
	}{
		{"zero limit beside it", also(core.Limit{}), "Also[0]", "0/0s", "Max must be 1"},
		{"negative limit beside it", also(core.PerDay(9), core.PerHour(-1)), "Also[1]", "-1/h", "Max must be"},
		{"no limit beside it", also(core.Unlimited), "Also[0]", "unlimited", "LimitFor"},
		{"a zone that is none beside it", also(core.PerCalendarDay(1, "Nowhere/City")), "Also[0]", "1/day@Nowhere/City", "Calendar is of a zone"},
		{"the span again", also(core.PerHour(9)), "Also[0]", "9/h", "its counter"},
		{"a span twice", also(core.PerDay(9), core.PerDay(8)), "Also[1]", "8/24h", "its counter"},
		{"a bucket twice", also(core.PerDay(9).Bucket(3), core.PerDay(9).Bucket(4)), "Also[1]", "9/24h burst 4", "its counter"},
		{"a calendar twice", also(core.PerCalendarDay(9, "UTC"), core.Limit{Max: 3, Calendar: core.PerCalendarDay(1, "UTC").Calendar}), "Also[1]", "3/day@UTC", "its counter"},

		{"bans from nothing", ban(core.Ban{For: time.Hour}), "Ban.After", "0", "1 to 1000"},
		{"bans from less", ban(core.Ban{After: -1, For: time.Hour}), "Ban.After", "-1", "1 to 1000"},
		{"bans from never", ban(core.Ban{After: 1001, For: time.Hour}), "Ban.After", "1001", "1 to 1000"},
		{"a ban without an end", ban(core.Ban{After: 3}), "Ban.For", "0s", "a ban has an end"},
		{"a ban backwards", ban(core.Ban{After: 3, For: -time.Hour}), "Ban.For", "-1h", "a ban has an end"},
		{"a ban of no time", ban(core.Ban{After: 3, For: time.Millisecond - 1}), "Ban.For", "999.999µs", "1 ms"},
		{"a ban for ever", ban(core.Ban{After: 3, For: year + 1}), "Ban.For", "8784h", "366 days"},
		{"a ban that shrinks", ban(core.Ban{After: 3, For: time.Hour, Max: time.Hour - 1}), "Ban.Max", "59m", "no shorter than the first ban"},
		{"a ban that grows for ever", ban(core.Ban{After: 3, For: time.Hour, Max: year + 1}), "Ban.Max", "8784h", "366 days"},
		{"only a longest ban", ban(core.Ban{Max: time.Hour}), "Ban.After", "0", "by hand"},
		{"a ban by hand and not", ban(core.Ban{After: 3, For: time.Hour, ByHand: true}), "Ban.ByHand", "true", "without the other fields"},

		{"no zone", calendar(core.PerCalendarDay(1, "").Calendar, 0), "Limit.Calendar", "day of ", "needs a zone by name"},
		{"this machine's zone", calendar(core.PerCalendarMonth(1, "Local").Calendar, 0), "Limit.Calendar", "month of Local", "same on every machine"},
		{"an unknown zone", calendar(core.PerCalendarDay(1, "Nowhere/City").Calendar, 0), "Limit.Calendar", "day of Nowhere/City", "time/tzdata"},
		{"a file for a zone", calendar(core.PerCalendarDay(1, "../../etc/passwd").Calendar, 0), "Limit.Calendar", "day of ../../etc/passwd", "time/tzdata"},
		{"a calendar of another algorithm", calendar(core.PerCalendarDay(1, "UTC").Calendar, core.FixedWindow), "Limit.Calendar", "day of UTC", "calendar window only"},
		{"a calendar and Seconds", core.Rule{Name: "n", Seconds: 1, Limit: core.PerCalendarDay(5, "UTC")}, "Limit", "5/day@UTC", "one or the other"},
		{"a calendar and a Window", core.Rule{Name: "n", Limit: core.Limit{Max: 5, Calendar: core.PerCalendarDay(1, "UTC").Calendar, Window: time.Second}}, "Limit.Calendar", "day of UTC", "set one of the two"},
		{"a calendar and a Burst", core.Rule{Name: "n", Limit: core.Limit{Max: 5, Calendar: core.PerCalendarDay(1, "UTC").Calendar, Burst: 3}}, "Limit.Burst", "3", "applies only to a token bucket"},
		{"a calendar without a span", core.Rule{Name: "n", Limit: core.Limit{Max: 5}.Aligned()}, "Limit.Window", "0s", "1 ms"},

		{"a log too long", core.Rule{Name: "n", Limit: core.PerSecond(10_001).Log()}, "Limit.Max", "10001", "1 to 10,000 for SlidingLog"},
		{"too many in flight", core.Rule{Name: "n", Limit: core.Limit{Max: 10_001, Window: 1 * time.Second, Algorithm: core.Concurrency}}, "Limit.Max", "10001", "1 to 10,000 for Concurrency"},
		{"slots too short to renew", core.Rule{Name: "n", Limit: core.Limit{Max: 5, Window: 999 * time.Millisecond, Algorithm: core.Concurrency}}, "Limit.Window", "999ms", "at least 1 s"},
		{"a bucket too fine to be exact", core.Rule{Name: "n", Limit: core.Limit{Max: mostPermits - 1, Window: year - time.Microsecond}.Bucket(0)}, "Limit.Max", fmt.Sprint(mostPermits - 1), "rounder number"},
		{"a message of invalid UTF-8", with(func(r *core.Rule) { r.Message = "\xff" }), "Message", "\xff", "UTF-8"},
		{"a note that nothing keeps", with(func(r *core.Rule) { r.Note = note("") }), "Note", "a function", "sliding log only"},
	} {
		t.Run(test.name, func(t *testing.T) {
			_, err := newLimiter(t, core.Options{}).Guard(test.rule)
			wantRuleError(t, err, "n", test.field, test.value)
			if !strings.Contains(err.Error(), test.says) {
				t.Errorf("%q does not say %q", err, test.says)
			}
		})
	}
}

// note returns a Note with the same text for every call.
func note(text string) func(core.Request) string { return func(core.Request) string { return text } }

func TestFeaturesTaken(t *testing.T) {
	const year = 366 * 24 * time.Hour
	for name, rule := range map[string]core.Rule{
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
			wantServed(t, newGuard(t, newLimiter(t, core.Options{}), rule), newView("GET", "/"), ok, 200)
		})
	}
}

// A name stands for the whole list of limits, in their order. The error shows the limits that it
// stands for.
func TestANameStandsForAllLimits(t *testing.T) {
	limiter := newLimiter(t, core.Options{})
	list := core.Rule{Name: "n", Seconds: 60, Also: []core.Limit{core.PerHour(20), core.PerCalendarDay(50, "UTC")}}
	newGuard(t, limiter, list)
	other := list
	other.Also = []core.Limit{core.PerHour(20), core.PerCalendarDay(51, "UTC")}
	fewer, swapped, spelled, dry := list, list, list, other
	fewer.Also = list.Also[:1]
	swapped.Also = []core.Limit{list.Also[1], list.Also[0]}
	spelled.Seconds, spelled.Limit = 0, core.PerMinute(5)
	spelled.Also = []core.Limit{list.Also[0], {Max: 50, Calendar: core.PerCalendarDay(1, "UTC").Calendar}}
	dry.Mode = core.DryRun
	for name, rule := range map[string]core.Rule{"another number": other, "fewer": fewer, "another order": swapped} {
		t.Run(name, func(t *testing.T) {
			_, err := limiter.Guard(rule)
			wantRuleError(t, err, "n", "Name", "n")
			if !strings.Contains(err.Error(), "20/h and 50/day@UTC") {
				t.Errorf("%v does not say for what the name stands", err)
			}
		})
	}
	newGuard(t, limiter, spelled)
	newGuard(t, limiter, dry) // a rule in DryRun may have other limits
}
