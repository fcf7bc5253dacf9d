package core_test

import (
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
		{"plans that nobody has", core.Rule{Seconds: 1, Plans: map[string]core.Limit{"pro": core.PerSecond(9)}}, "Plan", "<nil>"},
		{"a plan of none", core.Rule{Seconds: 1, Plan: planOf("pro")}, "Plans", "<nil>"},
		{"two kinds of plans", core.Rule{Seconds: 1, Plans: map[string]core.Limit{"pro": core.PerSecond(9)}, Plan: planOf("pro"), LimitFor: noLimit}, "LimitFor", "a function"},
		{"a plan without a name", core.Rule{Seconds: 1, Plans: map[string]core.Limit{"": core.PerSecond(9)}, Plan: planOf("")}, "Plans", ""},
		{"a plan that is no limit", core.Rule{Seconds: 1, Plans: map[string]core.Limit{"pro": {}}, Plan: planOf("pro")}, `Plans["pro"]`, "0/0s"},
		{"a share of a plan that cannot be counted", core.Rule{
			Seconds: 1, Plans: map[string]core.Limit{"pro": core.PerDay(100_000_000).Bucket(0)}, Plan: planOf("pro"), OnStoreError: core.CountLocally(1. / 3),
		}, "OnStoreError", "count_locally 0.3333333333333333"},
		{"negative Seconds", core.Rule{Seconds: -1}, "Seconds", "-1"},
		{"most negative Seconds", core.Rule{Seconds: math.MinInt}, "Seconds", "-922"},
		{"largest Seconds", core.Rule{Seconds: math.MaxInt}, "Seconds", "922"},
		{"Seconds that overflow a duration to a small one", core.Rule{Seconds: min(18446744074, math.MaxInt)}, "Seconds", "18446744074"},
		{"negative Window", core.Rule{Limit: core.Limit{Max: 5, Window: -time.Second}}, "Limit.Window", "-1s"},
		{"Window under a millisecond", core.Rule{Limit: core.Limit{Max: 5, Window: time.Millisecond - 1}}, "Limit.Window", "999.999µs"},
		{"Window of half microseconds", core.Rule{Limit: core.Limit{Max: 5, Window: time.Second + 500}}, "Limit.Window", "1.0000005s"},
		{"Window over a year", core.Rule{Limit: core.Limit{Max: 5, Window: year + time.Microsecond}}, "Limit.Window", "8784h0m0.000001s"},
		{"largest Window", core.Rule{Limit: core.Limit{Max: 5, Window: math.MaxInt64}}, "Limit.Window", "2562047h"},
		{"negative MaxCount", core.Rule{Seconds: 1, MaxCount: -1}, "MaxCount", "-1"},
		{"most negative MaxCount", core.Rule{Seconds: 1, MaxCount: math.MinInt}, "MaxCount", "-922"},
		{"largest MaxCount", core.Rule{Seconds: 1, MaxCount: math.MaxInt}, "MaxCount", "922"},
		{"largest MaxCount of a bucket", core.Rule{Limit: core.PerSecond(math.MaxInt).Bucket(0)}, "Limit.Max", "922"},
		{"negative Burst", core.Rule{Limit: core.PerSecond(5).Bucket(-1)}, "Limit.Burst", "-1"},
		{"largest Burst", core.Rule{Limit: core.PerSecond(5).Bucket(math.MaxInt)}, "Limit.Burst", "922"},
		{"bucket too fine to be exact", core.Rule{Limit: core.Limit{Max: 1, Window: year - time.Microsecond}.Bucket(mostPermits)}, "Limit.Burst", "1000000000000"},
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

// The caller keeps its slices: what it does to them later changes no rule.
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

// planOf is a Plan by which every caller has the same plan.
func planOf(name string) func(core.Request) (string, error) {
	return func(core.Request) (string, error) { return name, nil }
}

func noLimit(core.Request) (core.Limit, error) { return core.Limit{}, nil }
