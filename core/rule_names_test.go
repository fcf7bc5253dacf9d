package core_test

import (
	"testing"

	"github.com/accesslimit/accesslimit/core"
)

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
		{"Overrides on both", core.Rule{Name: "api", Seconds: 60, Overrides: true}, core.Rule{Name: "api", Seconds: 60, Overrides: true}, false},
		{"Overrides on one", first, core.Rule{Name: "api", Seconds: 60, MaxCount: 5, Overrides: true}, true},
		{"Overrides on one that is tried", first, core.Rule{Name: "api", Seconds: 60, MaxCount: 5, Overrides: true, Mode: core.DryRun}, false},
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
