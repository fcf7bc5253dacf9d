package engine_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/accesslimit/accesslimit/core/internal/algorithm"
	"github.com/accesslimit/accesslimit/core/internal/engine"
	"github.com/accesslimit/accesslimit/core/internal/rediskey"
)

// rule returns a rule with limits. The subjects of all its limits differ.
func rule(name string, soft bool, limits ...engine.Limit) *engine.Rule {
	r := &engine.Rule{Name: name, Soft: soft}
	for _, l := range limits {
		l.KeyTail = rediskey.LimitTail(name, false, l.Compiled)
		r.Limits = append(r.Limits, &l)
	}
	return r
}

func hard(name string, limits ...engine.Limit) *engine.Rule {
	return rule(name, false, limits...)
}

func soft(name string, limits ...engine.Limit) *engine.Rule {
	return rule(name, true, limits...)
}

// with returns the rule after a change.
func with(r *engine.Rule, change func(*engine.Rule)) *engine.Rule {
	change(r)
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

// limitName returns the name of the rule at i, and which of its limits it is.
func (c *call) limitName(i int) string {
	a := c.Limit(i)
	if a.IsMark {
		return a.Rule.Name + " mark"
	}
	return fmt.Sprint(a.Rule.Name, "/", a.N)
}

// counters describes what the store is asked.
func (c *call) counters() string {
	var all []string
	for i := range c.Len() {
		a, counter := c.Limit(i), c.Counter(i)
		text := fmt.Sprintf("%s %d of %d", c.limitName(i), counter.Cost, counter.Limit.Max)
		for _, part := range []struct {
			set  bool
			text string
		}{
			{a.Max > 0, fmt.Sprintf("both %d+%d", a.Max, a.Burst)},
			{counter.Behind > 0, fmt.Sprint("behind ", counter.Behind)}, {counter.Behind > 0 != a.Rule.Soft, "of another rule"},
			{counter.Required, "required"}, {counter.Personal, "personal"},
			{counter.LocalShare > 0, fmt.Sprint("share ", counter.LocalShare)},
			{counter.Mark != "", "mark " + counter.Mark}, {a.Costly, "costly"},
		} {
			if part.set {
				text += ", " + part.text
			}
		}
		for _, other := range a.Merged {
			text += fmt.Sprint(", with ", other.At)
		}
		all = append(all, text)
	}
	return strings.Join(all, "; ")
}

// verdicts describes what the store answered.
func (c *call) verdicts() string {
	var all []string
	for i := range c.Len() {
		v := c.Verdict(i)
		text := fmt.Sprint(c.limitName(i), " left ", v.Remaining)
		switch {
		case v.Err != nil || v.Ended != nil:
			text = fmt.Sprint(c.limitName(i), " failed")
		case v.RetryAfter == algorithm.Forever:
			text += ", never"
		case v.RetryAfter > 0:
			text += fmt.Sprintf(", in %dh", v.RetryAfter/hour)
		}
		all = append(all, text)
	}
	return strings.Join(append(all, fmt.Sprint("passed ", c.Passed())), "; ")
}

// want compares what a test got.
func want(t testing.TB, what, got, want string) {
	t.Helper()
	if got != want {
		t.Errorf("%s:\n got %s\nwant %s", what, got, want)
	}
}
