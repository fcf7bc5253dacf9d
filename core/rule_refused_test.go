package core_test

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/accesslimit/accesslimit/core"
)

const year = 366 * 24 * time.Hour

// refusedRule is a rule that is refused for the value of a field, in an error that says something.
type refusedRule struct {
	name               string
	rule               core.Rule
	field, value, says string
}

func TestRulesRefused(t *testing.T) {
	for _, test := range slices.Concat(refusedFields, refusedLimits(), refusedBans(), refusedTexts()) {
		t.Run(test.name, func(t *testing.T) {
			guard, err := newLimiter(t, core.Options{}).Guard(core.Rule{Name: "sound", Seconds: 1}, test.rule)
			wantRuleError(t, err, test.rule.Name, test.field, test.value)
			if guard != nil || !strings.Contains(err.Error(), test.says) {
				t.Errorf("guard %v, %q, want it to say %q", guard, err, test.says)
			}
		})
	}
}

var refusedFields = []refusedRule{
	{"no span", core.Rule{MaxCount: 5}, "Seconds", "0", ""},
	{"two limits", core.Rule{Seconds: 1, Limit: core.PerSecond(5)}, "Limit", "5/s", ""},
	{"two limits, one negative", core.Rule{Seconds: -1, Limit: core.PerSecond(5)}, "Limit", "5/s", ""},
	{"two numbers", core.Rule{MaxCount: 5, Limit: core.PerSecond(5)}, "MaxCount", "5", ""},
	{"Unlimited", core.Rule{Limit: core.Unlimited}, "Limit", "unlimited", ""},
	{"plans that nobody has", core.Rule{Seconds: 1, Plans: map[string]core.Limit{"pro": core.PerSecond(9)}}, "Plans", "map[pro:9/s]", ""},
	{"a plan of none", core.Rule{Seconds: 1, Plan: planOf("pro")}, "Plan", "a function", ""},
	{"two kinds of plans", core.Rule{Seconds: 1, Plans: map[string]core.Limit{"pro": core.PerSecond(9)}, Plan: planOf("pro"), LimitFor: noLimit}, "LimitFor", "a function", ""},
	{"a plan without a name", core.Rule{Seconds: 1, Plans: map[string]core.Limit{"": core.PerSecond(9)}, Plan: planOf("")}, "Plans", "", ""},
	{"a plan that is no limit", core.Rule{Seconds: 1, Plans: map[string]core.Limit{"pro": {}}, Plan: planOf("pro")}, `Plans["pro"]`, "0/0s", ""},
	{"a share of a plan that cannot be counted", core.Rule{
		Seconds: 1, Plans: map[string]core.Limit{"pro": core.PerDay(100_000_000).Bucket(0)}, Plan: planOf("pro"), OnStoreError: core.CountLocally(1. / 3),
	}, "OnStoreError", "count_locally 0.3333333333333333", ""},
	{"negative Seconds", core.Rule{Seconds: -1}, "Seconds", "-1", ""},
	{"most negative Seconds", core.Rule{Seconds: math.MinInt}, "Seconds", fmt.Sprint(math.MinInt), ""},
	{"largest Seconds", core.Rule{Seconds: math.MaxInt}, "Seconds", fmt.Sprint(math.MaxInt), ""},
	{"Seconds that overflow a duration to a small one", core.Rule{Seconds: min(18446744074, math.MaxInt)}, "Seconds", fmt.Sprint(min(18446744074, math.MaxInt)), ""},
	{"negative Window", core.Rule{Limit: core.Limit{Max: 5, Window: -time.Second}}, "Limit.Window", "-1s", ""},
	{"Window under a millisecond", core.Rule{Limit: core.Limit{Max: 5, Window: time.Millisecond - 1}}, "Limit.Window", "999.999µs", ""},
	{"Window of half microseconds", core.Rule{Limit: core.Limit{Max: 5, Window: time.Second + 500}}, "Limit.Window", "1.0000005s", ""},
	{"Window over a year", core.Rule{Limit: core.Limit{Max: 5, Window: year + time.Microsecond}}, "Limit.Window", "8784h0m0.000001s", ""},
	{"largest Window", core.Rule{Limit: core.Limit{Max: 5, Window: math.MaxInt64}}, "Limit.Window", "2562047h", ""},
	{"negative MaxCount", core.Rule{Seconds: 1, MaxCount: -1}, "MaxCount", "-1", ""},
	{"most negative MaxCount", core.Rule{Seconds: 1, MaxCount: math.MinInt}, "MaxCount", fmt.Sprint(math.MinInt), ""},
	{"largest MaxCount", core.Rule{Seconds: 1, MaxCount: noMax()}, "MaxCount", fmt.Sprint(noMax()), ""},
	{"largest MaxCount of a bucket", core.Rule{Limit: core.PerSecond(noMax()).Bucket(0)}, "Limit.Max", fmt.Sprint(noMax()), ""},
	{"negative Burst", core.Rule{Limit: core.PerSecond(5).Bucket(-1)}, "Limit.Burst", "-1", ""},
	{"largest Burst", core.Rule{Limit: core.PerSecond(5).Bucket(noMax())}, "Limit.Burst", fmt.Sprint(noMax()), ""},
	{"bucket too fine to be exact", core.Rule{Limit: core.Limit{Max: 1, Window: year - time.Microsecond}.Bucket(mostPermits)}, "Limit.Burst", fmt.Sprint(mostPermits), ""},
	{"Burst on the default algorithm", core.Rule{Limit: core.Limit{Max: 5, Window: time.Second, Burst: 1}}, "Limit.Burst", "1", ""},
	{"Burst on a fixed window", core.Rule{Limit: core.Limit{Max: 5, Window: time.Second, Algorithm: core.FixedWindow, Burst: 1}}, "Limit.Burst", "1", ""},
	{"unknown algorithm", core.Rule{Limit: core.Limit{Max: 5, Window: time.Second, Algorithm: 6}}, "Limit.Algorithm", "Algorithm(6)", ""},
	{"last unknown algorithm", core.Rule{Limit: core.Limit{Max: 5, Window: time.Second, Algorithm: 255}}, "Limit.Algorithm", "Algorithm(255)", ""},
	{"negative share", core.Rule{Seconds: 1, OnStoreError: core.CountLocally(-0.5)}, "OnStoreError", "count_locally -0.5", ""},
	{"share above the whole", core.Rule{Seconds: 1, OnStoreError: core.CountLocally(1.5)}, "OnStoreError", "count_locally 1.5", ""},
	{"share that is no number", core.Rule{Seconds: 1, OnStoreError: core.CountLocally(math.NaN())}, "OnStoreError", "count_locally NaN", ""},
	{"share that cannot be counted", core.Rule{Limit: core.PerDay(100_000_000).Bucket(0), OnStoreError: core.CountLocally(1. / 3)}, "OnStoreError", "count_locally 0.3333333333333333", ""},
	{"NeedLogin without Identify", core.Rule{Seconds: 1, NeedLogin: true}, "NeedLogin", "true", ""},
	{"negative Lease", core.Rule{Seconds: 1, Lease: -1}, "Lease", "-1", ""},
	{"Lease over MaxCount", core.Rule{Seconds: 1, MaxCount: 10, Lease: 11}, "Lease", "11", ""},
	{"Lease over the MaxCount that is unset", core.Rule{Seconds: 1, Lease: 6}, "Lease", "6", ""},
	{"Lease of a bucket", core.Rule{Limit: core.PerSecond(5).Bucket(0), Lease: 1}, "Lease", "1", ""},
	{"Lease of a log", core.Rule{Limit: core.PerSecond(5).Log(), Lease: 1}, "Lease", "1", ""},
	{"Lease of a calendar", core.Rule{Limit: core.PerCalendarDay(5, "UTC"), Lease: 1}, "Lease", "1", ""},
	{"Lease of slots", core.Rule{Limit: core.Limit{Max: 5, Window: time.Second, Algorithm: core.Concurrency}, Lease: 1}, "Lease", "1", ""},
	{"no zone", core.Rule{Name: "n", Limit: core.PerCalendarDay(1, "")}, "Limit.Calendar", "day of ", "needs a zone by name"},
	{"this machine's zone", core.Rule{Name: "n", Limit: core.PerCalendarMonth(1, "Local")}, "Limit.Calendar", "month of Local", "same on every machine"},
	{"an unknown zone", core.Rule{Name: "n", Limit: core.PerCalendarDay(1, "Nowhere/City")}, "Limit.Calendar", "day of Nowhere/City", "time/tzdata"},
	{"a file for a zone", core.Rule{Name: "n", Limit: core.PerCalendarDay(1, "../../etc/passwd")}, "Limit.Calendar", "day of ../../etc/passwd", "time/tzdata"},
	{"a calendar of another algorithm", core.Rule{Name: "n", Limit: core.Limit{Max: 5, Calendar: core.PerCalendarDay(1, "UTC").Calendar, Algorithm: core.FixedWindow}}, "Limit.Calendar", "day of UTC", "calendar window only"},
	{"a calendar of a bucket", core.Rule{Name: "n", Limit: core.PerCalendarDay(1, "UTC").Bucket(1)}, "Limit.Calendar", "day of UTC", "calendar window only"},
	{"an absolute path for a zone", core.Rule{Name: "n", Limit: core.PerCalendarDay(1, "/etc/localtime")}, "Limit.Calendar", "day of /etc/localtime", ""},
	{"a calendar and Seconds", core.Rule{Name: "n", Seconds: 1, Limit: core.PerCalendarDay(5, "UTC")}, "Limit", "5/day@UTC", "one or the other"},
	{"a calendar and a Window", core.Rule{Name: "n", Limit: core.Limit{Max: 5, Calendar: core.PerCalendarDay(1, "UTC").Calendar, Window: time.Second}}, "Limit.Calendar", "day of UTC", "set one of the two"},
	{"a calendar and a Burst", core.Rule{Name: "n", Limit: core.Limit{Max: 5, Calendar: core.PerCalendarDay(1, "UTC").Calendar, Burst: 3}}, "Limit.Burst", "3", "applies only to a token bucket"},
	{"a calendar without a span", core.Rule{Name: "n", Limit: core.Limit{Max: 5}.Aligned()}, "Limit.Window", "0s", "1 ms"},
	{"a log too long", core.Rule{Name: "n", Limit: core.PerSecond(10_001).Log()}, "Limit.Max", "10001", "1 to 10,000 for SlidingLog"},
	{"too many in flight", core.Rule{Name: "n", Limit: core.Limit{Max: 10_001, Window: 1 * time.Second, Algorithm: core.Concurrency}}, "Limit.Max", "10001", "1 to 10,000 for Concurrency"},
	{"slots too short to renew", core.Rule{Name: "n", Limit: core.Limit{Max: 5, Window: 999 * time.Millisecond, Algorithm: core.Concurrency}}, "Limit.Window", "999ms", "at least 1 s"},
	{"a bucket too fine to be exact", core.Rule{Name: "n", Limit: core.Limit{Max: mostPermits - 1, Window: year - time.Microsecond}.Bucket(0)}, "Limit.Max", fmt.Sprint(mostPermits - 1), "rounder number"},
	{"a mode that does not exist", core.Rule{Seconds: 1, Mode: 3}, "Mode", "Mode(3)", ""},
	{"soft without a name", core.Rule{Seconds: 1, Mode: core.Soft}, "Mode", "soft", ""},
	{"soft with a ban", core.Rule{Name: "n", Seconds: 1, Mode: core.Soft, Ban: core.Ban{After: 1, For: time.Hour}}, "Mode", "soft", ""},
	{"soft with a lease", core.Rule{Name: "n", Seconds: 1, Mode: core.Soft, Lease: 1}, "Mode", "soft", ""},
	{"soft with FailClosed", core.Rule{Name: "n", Seconds: 1, Mode: core.Soft, OnStoreError: core.FailClosed}, "Mode", "soft", ""},
	{"a message of invalid UTF-8", core.Rule{Seconds: 1, Message: "\xff"}, "Message", "\xff", "UTF-8"},
	{"a note that nothing keeps", core.Rule{Seconds: 1, Note: note("")}, "Note", "a function", "sliding log only"},
}

// refusedLimits are limits beside the rule's own.
func refusedLimits() (all []refusedRule) {
	for _, test := range []struct {
		name               string
		also               []core.Limit
		field, value, says string
	}{
		{"zero limit beside it", []core.Limit{{}}, "Also[0]", "0/0s", "Max must be 1"},
		{"negative limit beside it", []core.Limit{core.PerDay(9), core.PerHour(-1)}, "Also[1]", "-1/h", "Max must be"},
		{"no limit beside it", []core.Limit{core.Unlimited}, "Also[0]", "unlimited", "LimitFor"},
		{"a zone that is none beside it", []core.Limit{core.PerCalendarDay(1, "Nowhere/City")}, "Also[0]", "1/day@Nowhere/City", "Calendar is of a zone"},
		{"the span again", []core.Limit{core.PerHour(9)}, "Also[0]", "9/h", "its counter"},
		{"a span twice", []core.Limit{core.PerDay(9), core.PerDay(8)}, "Also[1]", "8/24h", "its counter"},
		{"a bucket twice", []core.Limit{core.PerDay(9).Bucket(3), core.PerDay(9).Bucket(4)}, "Also[1]", "9/24h burst 4", "its counter"},
		{"a calendar twice", []core.Limit{core.PerCalendarDay(9, "UTC"), {Max: 3, Calendar: core.PerCalendarDay(1, "UTC").Calendar}}, "Also[1]", "3/day@UTC", "its counter"},
	} {
		all = append(all, refusedRule{test.name, core.Rule{Name: "n", Seconds: 3600, Also: test.also}, test.field, test.value, test.says})
	}
	return all
}

func refusedBans() (all []refusedRule) {
	for _, test := range []struct {
		name               string
		ban                core.Ban
		field, value, says string
	}{
		{"bans from nothing", core.Ban{For: time.Hour}, "Ban.After", "0", "1 to 1000"},
		{"bans from less", core.Ban{After: -1, For: time.Hour}, "Ban.After", "-1", "1 to 1000"},
		{"bans from never", core.Ban{After: 1001, For: time.Hour}, "Ban.After", "1001", "1 to 1000"},
		{"a ban without an end", core.Ban{After: 3}, "Ban.For", "0s", "a ban has an end"},
		{"a ban backwards", core.Ban{After: 3, For: -time.Hour}, "Ban.For", "-1h", "a ban has an end"},
		{"a ban of no time", core.Ban{After: 3, For: time.Millisecond - 1}, "Ban.For", "999.999µs", "1 ms"},
		{"a ban for ever", core.Ban{After: 3, For: year + 1}, "Ban.For", "8784h", "366 days"},
		{"a ban that shrinks", core.Ban{After: 3, For: time.Hour, Max: time.Hour - 1}, "Ban.Max", "59m", "no shorter than the first ban"},
		{"a ban that grows for ever", core.Ban{After: 3, For: time.Hour, Max: year + 1}, "Ban.Max", "8784h", "366 days"},
		{"only a longest ban", core.Ban{Max: time.Hour}, "Ban.After", "0", "1 to 1000"},
	} {
		all = append(all, refusedRule{test.name, core.Rule{Name: "n", Seconds: 3600, Ban: test.ban}, test.field, test.value, test.says})
	}
	return all
}

// refusedTexts are names, patterns and methods.
func refusedTexts() (all []refusedRule) {
	add := func(field, wrong string, rule core.Rule) {
		rule.Seconds = 1
		all = append(all, refusedRule{fmt.Sprintf("%s %.20q", field, wrong), rule, field, wrong, ""})
	}
	long := strings.Repeat("n", 129)
	for _, name := range []string{"a\r\nSet-Cookie: x", "a\x00", "a\x7f", "größe", "\xff", long, long + long} {
		add("Name", name, core.Rule{Name: name})
	}
	for _, zone := range []string{"Europe//Berlin", "Europe/./Berlin", "Europe/Berlin/", "./UTC"} { // another spelling would be another counter
		all = append(all, refusedRule{zone, core.Rule{Limit: core.PerCalendarDay(1, zone)}, "Limit.Calendar", "day of " + zone, ""})
	}
	for _, path := range []string{"limit/**", "", "/limit/[", "/limit/{a,b", `/limit\`, "**", "/[a-"} {
		add("Paths", path, core.Rule{Paths: []string{"/ok", path}})
		add("Except", path, core.Rule{Except: []string{path}})
	}
	for _, method := range []string{"post", "Get", "", "GET POST", "GET,POST"} {
		add("Methods", method, core.Rule{Methods: []string{"GET", method}})
	}
	return all
}
