package core_test

import (
	"errors"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/internal/logtest"
)

func newRuleSet(t testing.TB, limiter *core.Limiter, rules ...core.Rule) *core.RuleSet {
	t.Helper()
	set, err := limiter.RuleSet(rules...)
	if err != nil {
		t.Fatal(err)
	}
	return set
}

// A guard follows its set: the next call is decided by the new rules, and past use counts. A refusal
// that was remembered under the old limit is not repeated.
func TestAGuardFollowsItsSet(t *testing.T) {
	onBothEngines(t, func(t *testing.T, options core.Options, _ core.Source) {
		limiter := newLimiter(t, options)
		set := newRuleSet(t, limiter, named("api", core.PerHour(1)))
		guard, check := set.MustGuard("api"), set.MustCheck("api")
		wantStatus(t, guard, newView("GET", "/"), 200)
		wantStatus(t, guard, newView("GET", "/"), 429)
		wantStatus(t, guard, newView("GET", "/"), 429)
		if err := set.Replace("2", named("api", core.PerHour(2)), named("more", core.PerHour(9))); err != nil {
			t.Fatal(err)
		}
		if rules := check.Rules(); len(rules) != 1 || rules[0].Limit != core.PerHour(2) {
			t.Errorf("the check has %+v", rules)
		}
		wantStatus(t, guard, newView("GET", "/"), 200)
		wantStatus(t, guard, newView("GET", "/"), 429)
		if changed, err := check.Reset(t.Context(), me); err != nil || !changed {
			t.Errorf("Reset: %v, %v", changed, err)
		}
		wantStatus(t, guard, newView("GET", "/"), 200)
		stats := limiter.Stats().RuleSets
		if len(stats) != 1 || stats[0].Version != "2" || stats[0].Since.IsZero() || stats[0].LastError != "" {
			t.Errorf("the Stats have %+v", stats)
		}
		if set.MustGuard("more") == guard || set.MustGuard("api") != guard {
			t.Error("guards of other rules are one, or guards of the same rules are not")
		}
	})
}

// Rules that cannot be used leave the present ones in force, and every mistake is named.
func TestBadRulesDoNotReplace(t *testing.T) {
	limiter := newLimiter(t, core.Options{})
	set := newRuleSet(t, limiter, named("api", core.PerHour(1)), named("login", core.PerHour(5)))
	guard := set.MustGuard("api")
	check := set.MustCheck("login")
	defer runtime.KeepAlive(check)
	for _, test := range []struct {
		name  string
		rules []core.Rule
		wants []string
	}{
		{"a wrong limit", []core.Rule{named("api", core.PerHour(0)), named("login", core.PerHour(-4))}, []string{`rule "api": Limit.Max`, `rule "login": Limit.Max`}},
		{"no name", []core.Rule{{Seconds: 1}}, []string{"Name"}},
		{"one name twice", []core.Rule{named("api", core.PerHour(2)), named("api", core.PerHour(2)), named("login", core.PerHour(5))}, []string{`rule "api": Name`}},
		{"attached names missing", nil, []string{`rule "api": Name = "api": is attached (`, `rule "login": Name = "login": is attached (`, "ruleset_test.go:"}},
		{"not for a handler", []core.Rule{named("api", core.PerHour(2)), named("login", core.InFlight(5))}, []string{`rule "login": Limit`}},
	} {
		t.Run(test.name, func(t *testing.T) {
			err := set.Replace("bad", test.rules...)
			if err == nil {
				t.Fatal("no error")
			}
			for _, want := range test.wants {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("%v does not have %q", err, want)
				}
			}
			if rule := guard.Rules()[0]; rule.Limit != core.PerHour(1) {
				t.Errorf("the guard has %+v", rule)
			}
			if stats := limiter.Stats().RuleSets[0]; stats.Version != "" || stats.LastError != err.Error() || stats.LastErrorAt.Before(stats.Since) {
				t.Errorf("the Stats have %+v", stats)
			}
		})
	}
}

// A guard that the service holds no longer refuses nothing, whatever it would refuse.
func TestDroppedGuardsRefuseNothing(t *testing.T) {
	for name, next := range map[string][]core.Rule{
		"a missing name":            {},
		"a rule for no handler":     {named("api", core.InFlight(5))},
		"the limit of a rule in Go": {named("api", core.PerHour(2))},
	} {
		t.Run(name, func(t *testing.T) {
			limiter := newLimiter(t, core.Options{})
			set := newRuleSet(t, limiter, named("api", core.PerHour(1)))
			set.MustCheck("api")
			if name == "the limit of a rule in Go" {
				limiter.MustGuard(named("api", core.PerHour(1)))
			}
			if err := set.Replace("2", next...); err != nil {
				t.Error(err)
			}
		})
	}
}

// An error is logged once, until a version succeeds or is found to be the latest. Stats show the
// last one until then.
func TestErrorsAreReportedOnce(t *testing.T) {
	var log logtest.Log
	limiter := newLimiter(t, core.Options{Logger: log.Logger()})
	set := newRuleSet(t, limiter, named("api", core.PerHour(1)))
	guard := set.MustGuard("api")
	want := func(when string, zero, down int, lastError string) {
		t.Helper()
		if n := log.Count("level=ERROR", "stay in force", "Limit.Max = 0"); n != zero {
			t.Errorf("%s: %d lines about the limit, want %d", when, n, zero)
		}
		if n := log.Count("level=WARN", "stay in force", "cannot be read", "database is down"); n != down {
			t.Errorf("%s: %d lines about the database, want %d", when, n, down)
		}
		stats := limiter.Stats().RuleSets[0]
		if !strings.Contains(stats.LastError, lastError) || (stats.LastError == "") != (lastError == "") || stats.LastErrorAt.IsZero() != (lastError == "") {
			t.Errorf("%s: the Stats have %+v, want %q", when, stats, lastError)
		}
		if want := map[string]string{"database is down": "unread", "Limit.Max = 0": "wrong"}[lastError]; stats.Problem != want {
			t.Errorf("%s: the problem is %q, want %q", when, stats.Problem, want)
		}
	}
	for range 3 {
		if set.Replace("2", named("api", core.PerHour(0))) == nil {
			t.Error("no error")
		}
		set.ReportError(errors.New("the database is down"))
	}
	want("after errors", 1, 1, "database is down")
	mustReplace(t, set, named("api", core.PerHour(2)))
	want("after a success", 1, 1, "")
	_ = set.Replace("4", named("api", core.PerHour(0)))
	want("after another error", 2, 1, "Limit.Max = 0")
	set.ReportError(nil)
	want("after the latest version was found", 2, 1, "")
	if n := log.Count("level=INFO", "new rules are in force", "version=next"); n != 1 {
		t.Errorf("%d lines about the new version", n)
	}
	runtime.KeepAlive(guard)
}

func TestEmptyRuleSet(t *testing.T) {
	set := newRuleSet(t, newLimiter(t, core.Options{}))
	_, err := set.Guard()
	wantRuleError(t, err, "", "names", "[]")
	if _, err := set.Guard("api"); err == nil || err.Error() != `core: rule "api": Name = "api": is not in the set; its rules: none` {
		t.Error(err)
	}
}

// A name stands for one limit, whoever attached it. The error names both places.
func TestOneNameOneLimitAcrossSets(t *testing.T) {
	limiter := newLimiter(t, core.Options{})
	one, hour := named("one", core.PerHour(1)), named("one", core.PerHour(2))
	set, other := newRuleSet(t, limiter, one), newRuleSet(t, limiter, hour)
	guard := set.MustGuard("one")
	_, err := limiter.Guard(hour)
	wantPlaces(t, err, "1/h on this Limiter already (in a RuleSet, attached at ", "and here (", "for 2/h")
	_, err = other.Guard("one")
	wantPlaces(t, err, "1/h on this Limiter already (in a RuleSet, attached at ", "and here (in a RuleSet, attached at ", "for 2/h")

	// The claims of a set are those of its present rules.
	if err := set.Replace("2", hour); err != nil {
		t.Fatal(err)
	}
	_, err = limiter.Guard(one)
	wantPlaces(t, err, "2/h on this Limiter already (in a RuleSet, attached at ", "and here (", "for 1/h")
	static := newGuard(t, limiter, hour)
	err = set.Replace("3", one)
	wantPlaces(t, err, "2/h on this Limiter already (", "and here (in a RuleSet, attached at ", "for 1/h")
	if strings.Contains(err.Error(), "already (in a RuleSet") {
		t.Errorf("the set is compared with itself: %v", err)
	}
	if err := set.Replace("4", hour); err != nil {
		t.Error(err)
	}
	runtime.KeepAlive(guard)
	runtime.KeepAlive(static)
}

func wantPlaces(t *testing.T, err error, parts ...string) {
	t.Helper()
	if err == nil {
		t.Fatal("no error")
	}
	for _, part := range append(parts, "core/ruleset_") {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("%v does not have %q", err, part)
		}
	}
}

// inFlight returns a rule of so many calls at once, whose slots count for a while.
func inFlight(n int, window time.Duration) core.Rule {
	return named("n", core.InFlight(n).LostAfter(window))
}

// Calls in flight keep the slots that they began with. A changed number counts them. A changed
// window is another counter, which does not.
func TestSlotsAcrossVersions(t *testing.T) {
	onBothEngines(t, func(t *testing.T, options core.Options, _ core.Source) {
		limiter := newLimiter(t, options)
		set := newRuleSet(t, limiter, inFlight(2, time.Minute))
		guard := set.MustGuard("n")
		serveInside(t, guard, func() {
			serveInside(t, guard, func() { wantStatus(t, guard, newView("GET", "/"), 429) })
			mustReplace(t, set, inFlight(1, time.Minute))
			wantStatus(t, guard, newView("GET", "/"), 429)
			mustReplace(t, set, inFlight(1, time.Hour))
			serveInside(t, guard, func() { wantStatus(t, guard, newView("GET", "/"), 429) })
			wantLeft(t, limiter, "n", me, inFlight(1, time.Minute).Limit, 0)
		})
		wantLeft(t, limiter, "n", me, inFlight(1, time.Minute).Limit, 1)
		wantLeft(t, limiter, "n", me, inFlight(1, time.Hour).Limit, 1)
	})
}

// Outcomes and refunds give back to the counter that was charged, whatever the rule says by then.
func TestGivingBackAcrossVersions(t *testing.T) {
	counted := func(limit core.Limit) core.Rule {
		rule := named("n", limit)
		rule.Count = is(401)
		return rule
	}
	for name, next := range map[string]core.Limit{
		"another Max": core.PerHour(9), "another Window": core.PerDay(9), "another Algorithm": core.PerHour(9).Log(),
	} {
		t.Run(name, func(t *testing.T) {
			onBothEngines(t, func(t *testing.T, options core.Options, _ core.Source) {
				options.Expose = true
				limiter, first := newLimiter(t, options), core.PerHour(5)
				set := newRuleSet(t, limiter, counted(first))
				guard := set.MustGuard("n")
				counts, free := guard.Check(newView("POST", "/")), guard.Check(newView("POST", "/"))
				refunded := guard.Check(newView("POST", "/"))
				mustReplace(t, set, counted(next))
				serve(guard, newView("POST", "/"), 401)
				uncounted := named("n", next)
				mustReplace(t, set, uncounted)
				counts.Run(func() int { return 401 })
				free.Run(func() int { return 200 })
				d, _ := core.DecisionFrom(refunded.Context)
				if err := limiter.Refund(background, d, 1); err != nil {
					t.Error(err)
				}
				refunded.Run(func() int { return 200 }) // it has nothing left to give back
				if next.Window == first.Window && next.Algorithm == first.Algorithm {
					wantLeft(t, limiter, "n", me, first, 3)
				} else {
					wantLeft(t, limiter, "n", me, first, 4)
					wantLeft(t, limiter, "n", me, next, 8)
				}
			})
		})
	}
}
