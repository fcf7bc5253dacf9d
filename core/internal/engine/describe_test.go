package engine_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/accesslimit/accesslimit/core/internal/algorithm"
	"github.com/accesslimit/accesslimit/core/internal/engine"
)

// limitName returns the name of the rule at i, and which of its limits it is.
func (c *call) limitName(i int) string {
	a := c.Limit(i)
	if a.IsBan {
		return a.Rule.Name + " ban"
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
			{counter.Lenient, "dry"}, {counter.Lenient != (a.Rule.Mode != engine.Enforce), "of another rule"}, {counter.Group > 0, fmt.Sprint("group ", counter.Group)},
			{counter.Required, "required"}, {counter.Personal, "personal"},
			{counter.LocalShare > 0, fmt.Sprint("share ", counter.LocalShare)},
			{counter.Mark != "", "mark " + counter.Mark}, {a.Costly, "costly"},
			{counter.Watched != nil, fmt.Sprint("watches ", counter.Watched)},
			{counter.Override != nil, "obeys"}, {counter.Override != nil && counter.Own, "own"},
			{counter.Override != nil && counter.CountsIfOverridden, "spared"},
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
		if c.Limit(i).Banned {
			text += ", banned"
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
