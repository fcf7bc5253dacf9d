package core_test

import (
	"time"

	"github.com/accesslimit/accesslimit/core"
)

func cost(n int) func(core.Request) int { return func(core.Request) int { return n } }

func key(subject string) core.KeyFunc {
	return func(core.Request) (string, error) { return subject, nil }
}

// planOf returns a Plan that gives every caller the same plan.
func planOf(name string) func(core.Request) (string, error) {
	return func(core.Request) (string, error) { return name, nil }
}

// is returns a Count for calls that end with one of these outcomes.
func is(outcomes ...int) func(int) bool {
	return func(status int) bool {
		for _, outcome := range outcomes {
			if status == outcome {
				return true
			}
		}
		return false
	}
}

// change returns a copy of a rule with a change.
func change(rule core.Rule, do func(*core.Rule)) core.Rule {
	do(&rule)
	return rule
}

func named(name string, limit core.Limit) core.Rule { return core.Rule{Name: name, Limit: limit} }

// atOnce returns a rule of so many calls in flight for each caller, whose slots count for a minute.
func atOnce(n int) core.Rule {
	return core.Rule{Name: "n", Limit: core.Limit{Max: n, Window: 60 * time.Second, Algorithm: core.Concurrency}}
}

// atOnceAs is atOnce under another name.
func atOnceAs(name string, n int) core.Rule {
	rule := atOnce(n)
	rule.Name = name
	return rule
}

// byUser returns a rule of two calls an hour for each user, with overrides.
func byUser(name string) core.Rule {
	return core.Rule{Name: name, Limit: core.PerHour(2), Key: core.ByUser, Overrides: true}
}
