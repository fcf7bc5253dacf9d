package engine_test

import (
	"testing"

	"github.com/accesslimit/accesslimit/core/internal/algorithm"
)

var costlySoft = by{Rule: soft("s", perDay(5), perHour(2)), cost: 3}

// lenience are calls of soft rules, with their counters and verdicts.
var lenience = map[string]struct {
	rules              []by
	counters, verdicts string
}{
	"one limit":         {[]by{{Rule: soft("s", perDay(5))}}, "s/0 1 of 5, behind 1", "s/0 left 4; passed true"},
	"a hard rule":       {[]by{{Rule: hard("s", perDay(5), perHour(5))}}, "s/0 1 of 5; s/1 1 of 5", "s/0 left 4; s/1 left 4; passed true"},
	"two limits":        {[]by{{Rule: soft("s", perDay(5), perHour(2))}}, "s/0 1 of 5, behind 1; s/1 1 of 2, behind 1", "s/0 left 4; s/1 left 1; passed true"},
	"a cost":            {[]by{{Rule: hard("n", perDay(4))}, costlySoft}, "n/0 1 of 4; s/0 0 of 5, behind 2, costly; s/1 0 of 2, behind 2, costly", "n/0 left 3; s/0 left 5, never; s/1 left 2, never; passed true"},
	"a cost, one limit": {[]by{{Rule: soft("s", perDay(5)), cost: 6}, {Rule: soft("m", perDay(5)), cost: 5}}, "s/0 0 of 5, behind 1, costly; m/0 5 of 5, behind 2", "s/0 left 5, never; m/0 left 0; passed true"},
	"the largest cost":  {[]by{{Rule: soft("s", perDay(5), perHour(2)), cost: algorithm.LargestCost}}, "s/0 2 of 5, behind 1; s/1 2 of 2, behind 1", "s/0 left 3; s/1 left 0; passed true"},
	"groups with one counter": {
		[]by{{Rule: soft("s", perDay(5), perHour(2))}, {Rule: soft("s", windows(algorithm.FixedWindow, 9, 2*day), perHour(3))}},
		"s/0 1 of 5, behind 1; s/1 1 of 2, both 2+2, behind 1, with 1; s/0 1 of 9, behind 1", "s/0 left 4; s/1 left 1; s/0 left 8; passed true",
	},
	"a group and a single": {
		[]by{{Rule: soft("s", perHour(2))}, {Rule: soft("m", perDay(3))}, {Rule: soft("s", perDay(5), perHour(3))}},
		"s/0 1 of 2, both 2+2, behind 1, with 2; m/0 1 of 3, behind 2; s/0 1 of 5, behind 1", "s/0 left 1; m/0 left 2; s/0 left 4; passed true",
	},
	"a single and a group": {
		[]by{{Rule: hard("n", perDay(9))}, {Rule: soft("s", perDay(5), perHour(3))}, {Rule: soft("s", perHour(2))}},
		"n/0 1 of 9; s/0 1 of 5, behind 2; s/0 1 of 2, both 2+2, behind 2, with 1", "n/0 left 8; s/0 left 4; s/0 left 1; passed true",
	},
	"a cost for both": {
		[]by{{Rule: soft("s", perDay(5), perHour(4))}, {Rule: soft("s", windows(algorithm.FixedWindow, 9, 2*day), perHour(3)), cost: 4}, {Rule: soft("m", perDay(3))}},
		"s/0 0 of 5, behind 1, costly; s/1 0 of 3, both 3+3, behind 1, costly, with 0; s/0 0 of 9, behind 1, costly; m/0 1 of 3, behind 4",
		"s/0 left 5, never; s/1 left 3, never; s/0 left 9, never; m/0 left 2; passed true",
	},
	"a group that is shared first": {
		[]by{{Rule: soft("s", perDay(5), perHour(2))}, {Rule: soft("s", perHour(3), windows(algorithm.FixedWindow, 9, 2*day))}},
		"s/0 1 of 5, behind 1; s/1 1 of 2, both 2+2, behind 1, with 1; s/1 1 of 9, behind 1", "s/0 left 4; s/1 left 1; s/1 left 8; passed true",
	},
	"other groups": {
		[]by{{Rule: hard("n", perDay(9))}, {Rule: soft("m", perDay(3), perHour(3))}, {Rule: soft("k", perDay(3))}, {Rule: soft("s", perDay(1)), cost: 2}, costlySoft},
		"n/0 1 of 9; m/0 1 of 3, behind 2; m/1 1 of 3, behind 2; k/0 1 of 3, behind 4; s/0 0 of 1, both 1+1, behind 5, costly, with 4; s/1 0 of 2, behind 5, costly",
		"n/0 left 8; m/0 left 2; m/1 left 2; k/0 left 2; s/0 left 1, never; s/1 left 2, never; passed true",
	},
	"a cost before": {
		[]by{{Rule: soft("s", perHour(3)), cost: 4}, {Rule: soft("s", perDay(5), perHour(4))}},
		"s/0 0 of 3, both 3+3, behind 1, costly, with 1; s/0 0 of 5, behind 1, costly", "s/0 left 3, never; s/0 left 5, never; passed true",
	},
	"a shared limit": {
		[]by{{Rule: soft("s", perHour(4)), cost: 4}, {Rule: soft("s", perHour(3))}, {Rule: soft("s", perHour(9))}},
		"s/0 0 of 3, both 3+3, behind 1, costly, with 0, with 2", "s/0 left 3, never; passed true",
	},
}

// The counters of a soft rule are charged together or not at all, and those that it shares with
// another one bind both. A cost that never fits is not charged.
func TestLenience(t *testing.T) {
	for name, test := range lenience {
		c := newWorld(t).open().add(test.rules...)
		want(t, name, c.counters(), test.counters)
		if !c.Decide(background) {
			t.Errorf("%s: costly", name)
		}
		want(t, name, c.verdicts(), test.verdicts)
	}
}

// A group that does not fit is not charged, and lets the call pass. So does no other one.
func TestGroups(t *testing.T) {
	w := newWorld(t)
	rules := []by{{Rule: soft("s", perDay(5), perHour(2))}, {Rule: hard("n", perDay(4)), cost: 2}}
	c := w.open()
	for _, verdicts := range []string{
		"s/0 left 4; s/1 left 1; n/0 left 2; passed true", "s/0 left 3; s/1 left 0; n/0 left 0; passed true",
		"s/0 left 3; s/1 left 0, in 1h; n/0 left 0, in 24h; passed false",
	} {
		c.add(rules...).Decide(background)
		want(t, "calls", c.verdicts(), verdicts)
		c.Clear()
	}
	c.add(rules[0]).Decide(background)
	want(t, "a group that does not fit", c.verdicts(), "s/0 left 3; s/1 left 0, in 1h; passed true")
}

// A store that does not answer for a costly limit is a failure, as for others.
func TestCostlyInAnOutage(t *testing.T) {
	w := newWorld(t)
	w.store.answers = []algorithm.Verdict{{Err: errAway}, {Ended: errAway}, {Remaining: 1}}
	c := w.open().add(by{Rule: soft("s", perDay(5), perHour(2), windows(algorithm.FixedWindow, 9, 2*day)), cost: 3})
	c.Decide(background)
	want(t, "verdicts", c.verdicts(), "s/0 failed; s/1 failed; s/2 left 1, never; passed false")
	for i, wait := range []int64{0, 0, algorithm.Forever} {
		if c.Verdict(i).RetryAfter != wait {
			t.Errorf("%d: retry after %d", i, c.Verdict(i).RetryAfter)
		}
	}
	want(t, "noticed", w.take(), "s failed: away")
}
