package core_test

import (
	"context"
	"slices"
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

// Rules of one name share counters, so they must mean one limit.
func TestOneNameOneLimit(t *testing.T) {
	first := core.Rule{Name: "api", Seconds: 60, MaxCount: 5}
	bucket := core.Rule{Name: "api", Limit: core.PerMinute(5).Bucket(0)}
	paths := core.Rule{Seconds: 60, Paths: []string{"/a", "/b"}}
	listOf := func(also ...core.Limit) core.Rule { return core.Rule{Name: "api", Seconds: 60, Also: also} }
	list := listOf(core.PerHour(20), core.PerCalendarDay(50, "UTC"))
	spelled := core.Rule{Name: "api", Limit: core.PerMinute(5), Also: []core.Limit{core.PerHour(20), {Max: 50, Calendar: core.PerCalendarDay(1, "UTC").Calendar}}}
	for _, test := range []struct {
		name          string
		first, second core.Rule
		wrong         bool
	}{
		{"the same", first, first, false},
		{"span spelled as Window", first, core.Rule{Name: "api", Limit: core.PerMinute(5)}, false},
		{"MaxCount defaulted", first, core.Rule{Name: "api", Seconds: 60}, false},
		{"other routes, key and message", first, core.Rule{Name: "api", Seconds: 60, Paths: []string{"/x"}, Key: core.Global, Message: "m"}, false},
		{"Burst defaulted", bucket, core.Rule{Name: "api", Limit: core.PerMinute(5).Bucket(5)}, false},
		{"another name", first, core.Rule{Name: "API", Seconds: 60, MaxCount: 6}, false},
		{"another MaxCount", first, core.Rule{Name: "api", Seconds: 60, MaxCount: 6}, true},
		{"another span", first, core.Rule{Name: "api", Seconds: 61, MaxCount: 5}, true},
		{"another algorithm", first, bucket, true},
		{"another Burst", bucket, core.Rule{Name: "api", Limit: core.PerMinute(5).Bucket(6)}, true},
		{"the same paths in another order", paths, core.Rule{Seconds: 60, Paths: []string{"/b", "/a"}}, false},
		{"the same paths with another MaxCount", paths, core.Rule{Seconds: 60, MaxCount: 9, Paths: []string{"/b", "/a"}}, true},
		{"the same paths with another span", paths, core.Rule{Seconds: 61, Paths: []string{"/b", "/a"}}, false},
		{"the same paths with a method", paths, core.Rule{Seconds: 61, Paths: []string{"/a", "/b"}, Methods: []string{"GET"}}, false},
		{"the same paths with an exception", paths, core.Rule{Seconds: 61, Paths: []string{"/a", "/b"}, Except: []string{"/a"}}, false},
		{"the same list, spelled in another way", list, spelled, false},
		{"another number in a list", list, listOf(core.PerHour(20), core.PerCalendarDay(51, "UTC")), true},
		{"a shorter list", list, listOf(core.PerHour(20)), true},
		{"a list in another order", list, listOf(core.PerCalendarDay(50, "UTC"), core.PerHour(20)), true},
		{"another list that is tried", list, change(listOf(core.PerHour(21)), func(r *core.Rule) { r.Mode = core.DryRun }), false},
		{"unnamed", core.Rule{Seconds: 60}, core.Rule{Seconds: 61}, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			together := newLimiter(t, core.Options{})
			_, err := together.Guard(test.first, test.second)
			wantNameError(t, "on one guard", err, test.wrong)

			apart := newLimiter(t, core.Options{})
			newGuard(t, apart, test.first)
			_, err = apart.Guard(test.second)
			wantNameError(t, "on two guards", err, test.wrong)

			// Another limiter has its own names.
			newGuard(t, newLimiter(t, core.Options{}), test.second)
		})
	}
}

func wantNameError(t *testing.T, where string, err error, wrong bool) {
	t.Helper()
	switch {
	case !wrong && err != nil:
		t.Errorf("%s: %v", where, err)
	case wrong && err == nil:
		t.Errorf("%s: no error", where)
	case wrong:
		rule := err.(*core.RuleError).Rule
		wantRuleError(t, err, rule, "Name", rule)
	}
}

// A guard that was refused claims no names: its owner may correct it and try again.
func TestARefusedGuardTakesNoNames(t *testing.T) {
	limiter := newLimiter(t, core.Options{})
	if _, err := limiter.Guard(core.Rule{Name: "a", Seconds: 1}, core.Rule{Name: "b"}); err == nil {
		t.Fatal("a rule without a span was taken")
	}
	newGuard(t, limiter, core.Rule{Name: "a", Seconds: 2}, core.Rule{Name: "b", Seconds: 1})
}

// mistakesOf returns the fields and codes of what Check finds.
func mistakesOf(rule core.Rule, on *core.Limiter) (found []string) {
	for _, wrong := range rule.Check(on) {
		found = append(found, wrong.Field+" "+wrong.Code)
	}
	return found
}

// Check returns every mistake of a rule, and each has a code. Nothing follows from a wrong limit.
func TestEveryMistakeOfARule(t *testing.T) {
	bare := newLimiter(t, core.Options{})
	able := newLimiter(t, core.Options{
		Identify:    func(core.Request) (string, error) { return "", nil },
		OnThreshold: func(context.Context, core.Threshold) {},
	})
	many := core.Rule{
		Name: "größe", Limit: core.PerSecond(5).Bucket(0), Message: "\xff", NeedLogin: true,
		Also:  []core.Limit{core.PerSecond(6).Bucket(0), core.PerDay(1), core.PerDay(-1), core.PerDay(2)},
		Plans: map[string]core.Limit{"": core.PerSecond(1).Bucket(1), "a": core.PerDay(0), "b": core.PerDay(1), "c": core.Unlimited},
		Note:  func(core.Request) string { return "" },
		Lease: 6,
		Warn:  []float64{1, 0.5},
		Ban:   core.Ban{After: -1, For: -1},
		Paths: []string{"a", "/b", "c"}, Except: []string{"d"}, Methods: []string{"get", "post"},
		OnStoreError: core.CountLocally(2),
	}
	itself := []string{
		"Plans no_plan", "Lease lease_and_warn",
		"Name name_form", "Also[0] same_counter", "Also[2] max_range", "Also[3] same_counter",
		"Plans plan_without_name", `Plans["a"] max_range`,
		"Ban.After ban_after", "Ban.For ban_for", "Warn warn_order",
		"Paths path_pattern", "Paths path_pattern", "Except path_pattern", "Methods method", "Methods method",
		"OnStoreError store_policy_share", "Message message_form",
		"Note note_without_log", "Lease lease_range",
	}
	for name, on := range map[string]*core.Limiter{"no Limiter": nil, "a zero Limiter": {}, "a Limiter that can do all": able} {
		if got := mistakesOf(many, on); !slices.Equal(got, itself) {
			t.Errorf("%s: %q, want %q", name, got, itself)
		}
	}
	want := append(itself, "NeedLogin no_identify", "Warn no_on_threshold")
	if got := mistakesOf(many, bare); !slices.Equal(got, want) {
		t.Errorf("a Limiter without Identify and OnThreshold: %q, want %q", got, want)
	}
	many.Limit, many.Lease, many.Warn = core.Limit{}, 1, nil
	many.Message, many.Also, many.Plans, many.Ban, many.Paths, many.Except, many.Methods = "", nil, nil, core.Ban{}, nil, nil, nil
	if got, want := mistakesOf(many, able), []string{"Seconds no_limit", "Name name_form", "OnStoreError store_policy_share"}; !slices.Equal(got, want) {
		t.Errorf("without a limit: %q, want %q", got, want)
	}
	if got := mistakesOf(core.Rule{Seconds: 60, NeedLogin: true, Warn: []float64{1}}, able); got != nil {
		t.Errorf("of a sound rule: %q", got)
	}
}

// A share is checked for each limit that it would count, and the longest ban against the first.
func TestMistakesOfTwoFields(t *testing.T) {
	fine := core.PerDay(100_000_000).Bucket(0)
	rule := core.Rule{
		Limit: fine, Also: []core.Limit{core.PerHour(9)}, OnStoreError: core.CountLocally(1. / 3),
		Plan: planOf("pro"), Plans: map[string]core.Limit{"pro": fine}, Ban: core.Ban{After: 1, For: time.Hour, Max: time.Minute},
	}
	want := []string{"Ban.Max ban_max", "OnStoreError store_policy_limit", "OnStoreError store_policy_limit"}
	if got := mistakesOf(rule, nil); !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}
