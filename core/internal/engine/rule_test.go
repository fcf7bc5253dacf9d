package engine_test

import (
	"testing"

	"github.com/accesslimit/accesslimit/core/internal/algorithm"
	"github.com/accesslimit/accesslimit/core/internal/engine"
	"github.com/accesslimit/accesslimit/core/internal/rediskey"
)

// rule returns a rule with limits. The subjects of all its limits differ.
func rule(name string, mode engine.Mode, limits ...engine.Limit) *engine.Rule {
	r := &engine.Rule{Name: name, Mode: mode, BanKey: rediskey.BanTail(name, mode == engine.DryRun)}
	for _, l := range limits {
		l.KeyTail = rediskey.LimitTail(name, mode == engine.DryRun, l.Compiled)
		r.Limits = append(r.Limits, &l)
	}
	return r
}

func hard(name string, limits ...engine.Limit) *engine.Rule {
	return rule(name, engine.Enforce, limits...)
}

func soft(name string, limits ...engine.Limit) *engine.Rule {
	return rule(name, engine.Soft, limits...)
}

func dry(name string, limits ...engine.Limit) *engine.Rule {
	return rule(name, engine.DryRun, limits...)
}

// with returns the rule after a change.
func with(r *engine.Rule, change func(*engine.Rule)) *engine.Rule {
	change(r)
	return r
}

// obeying returns the rule with overrides.
func obeying(r *engine.Rule) *engine.Rule {
	r.OverrideKey = rediskey.OverrideTail(r.Name)
	return r
}

// banning returns the rule with a ban of a day, after one refusal.
func banning(r *engine.Rule) *engine.Rule {
	ban := algorithm.Banned(1, day, day, hour)
	r.Ban = &ban
	return r
}

// windows returns a limit of so many permits.
func windows(kind algorithm.Kind, most, window int64) engine.Limit {
	l := algorithm.Windowed(kind, most, window)
	return engine.Limit{Compiled: &l, Max: most}
}

func perDay(most int64) engine.Limit { return windows(algorithm.FixedWindow, most, day) }

func perHour(most int64) engine.Limit { return windows(algorithm.FixedWindow, most, hour) }

func logged(most int64) engine.Limit { return windows(algorithm.SlidingLog, most, day) }

func slots(most int64) engine.Limit { return windows(algorithm.Concurrency, most, 30*1_000_000) }

func bucket(most, burst int64) engine.Limit {
	l, err := algorithm.Bucketed(most, hour, burst)
	if err != nil {
		panic(err)
	}
	return engine.Limit{Compiled: &l, Max: most}
}

// ptr returns a limit in place of a rule's own.
func ptr(name string, l engine.Limit) *engine.Limit { return hard(name, l).Limits[0] }

// The largest cost is what fits into all limits but those of slots, up to 10^12 permits.
func TestLargestCost(t *testing.T) {
	for _, test := range []struct {
		limits []engine.Limit
		own    engine.Limit
		want   int64
	}{
		{[]engine.Limit{perDay(5)}, perDay(5), 5},
		{[]engine.Limit{perDay(5)}, perDay(7), 7},
		{[]engine.Limit{perDay(5), perHour(4)}, perDay(7), 4},
		{[]engine.Limit{perDay(5), slots(1)}, perDay(7), 7},
		{[]engine.Limit{slots(1)}, slots(1), 1_000_000_000_000},
		{[]engine.Limit{bucket(5, 3)}, bucket(5, 3), 3},
	} {
		if cost := hard("n", test.limits...).LargestCost(&test.own); cost != test.want {
			t.Errorf("%d of %+v, want %d", cost, test.limits, test.want)
		}
	}
}
