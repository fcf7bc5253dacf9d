package engine_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/accesslimit/accesslimit/core/internal/algorithm"
	"github.com/accesslimit/accesslimit/core/internal/engine"
	"github.com/accesslimit/accesslimit/core/internal/marks"
)

// A block or a ban refuses the call, whatever it costs: nothing is asked or charged, and callers are
// told of nothing else. That of a soft rule is only told. Other marks lift the limits of the rule, or
// replace all of them.
func TestMarkedSubjects(t *testing.T) {
	n, m := by{Rule: hard("n", perDay(3), perHour(5))}, by{Rule: hard("m", perDay(7))}
	marked := func(r by, kind marks.Kind, lasts int64) by {
		r.mark, r.lasts = kind, lasts
		return r
	}
	blocked, banned := marked(n, marks.Blocked, algorithm.Forever), marked(m, marks.Banned, 3*hour)
	softly := marked(by{Rule: soft("s", perDay(3), perHour(5))}, marks.Blocked, algorithm.Forever)
	free, unlimited, instead := blocked, n, n
	free.free = true
	unlimited.unlimited, unlimited.mark, unlimited.cost = true, marks.Unlimited, 99
	instead.instead, instead.own, instead.mark, instead.cost = []*engine.Limit{ptr("n", perHour(9)), ptr("n", slots(2))}, ptr("n", perDay(1)), marks.Limited, 6
	costly := m
	costly.cost = 8
	for what, test := range map[string]struct {
		rules                    []by
		asked, verdicts, noticed string
	}{
		"a block":              {[]by{m, blocked}, "", "n mark left 0, never; passed false", "n mark decided 3 bound refused"},
		"a ban":                {[]by{n, banned}, "", "m mark left 0, in 3h; passed false", "m mark decided 2 bound refused"},
		"a block and a ban":    {[]by{banned, blocked}, "", "m mark left 0, in 3h; n mark left 0, never; passed false", "n mark decided 3 bound refused, m mark decided 2 refused"},
		"above the cost":       {[]by{costly, blocked}, "", "n mark left 0, never; passed false", "n mark decided 3 bound refused"},
		"a call without cost":  {[]by{free}, "", "n mark left 0, never; passed false", "n mark decided 3 bound refused"},
		"a soft rule":          {[]by{softly, m}, "decide 1, charge true, lease 0", "m/0 left 6; s mark left 0, never; passed true", "s mark decided 4 bound refused, m/0 decided 0 usual"},
		"a soft rule alone":    {[]by{softly}, "", "s mark left 0, never; passed false", "s mark decided 4 bound refused"},
		"a soft rule and hard": {[]by{softly, banned}, "", "m mark left 0, in 3h; passed false", "m mark decided 2 bound refused"},
		"unlimited":            {[]by{unlimited, m}, "decide 1, charge true, lease 0", "m/0 left 6; passed true", "m/0 decided 0 usual bound"},
		"other limits":         {[]by{instead}, "decide 2, charge true, lease 0", "n/0 left 3; n/1 left 1; passed true", "n/1 decided 0 usual bound"},
	} {
		w := newWorld(t)
		c := w.open().add(test.rules...)
		if !c.Decide(background) {
			t.Errorf("%s: costly", what)
		}
		c.Notice(c.Binding())
		want(t, what+", asked", strings.Join(w.store.asked, ", "), test.asked)
		want(t, what, c.verdicts(), test.verdicts)
		want(t, what+", noticed", w.take(), test.noticed)
		if c.CountsNothing() || c.Source(c.Len()-1) == algorithm.FromMark != c.Limit(c.Len()-1).IsMark {
			t.Errorf("%s: from %d", what, c.Source(c.Len()-1))
		}
	}
}

// asks are the ways to ask about a call. They return whether the cost fits.
var asks = map[string]func(c *call) bool{
	"decide":  func(c *call) bool { return c.Decide(background) },
	"look":    func(c *call) bool { return c.Look(background) },
	"ask":     func(c *call) bool { return c.Ask(background) },
	"reserve": func(c *call) bool { return c.Reserve(background, 0) },
	"open":    func(c *call) bool { return c.Open(background, algorithm.OpenBill{}) },
	"charge":  func(c *call) bool { return c.Charge(background, 1) == 0 },
	"up to": func(c *call) bool {
		if !c.Counts() {
			return c.Decide(background)
		}
		return c.DecideUpTo(background) == 4
	},
}

// A block is known whatever a call asks.
func TestBlockedWhateverIsAsked(t *testing.T) {
	for what, ask := range asks {
		w := newWorld(t)
		w.Store, w.Turns = nil, nil
		c := w.open().add(by{Rule: hard("n", perDay(3)), mark: marks.Blocked, lasts: algorithm.Forever})
		if !ask(c) {
			t.Errorf("%s: the cost does not fit", what)
		}
		if c.Counts() {
			t.Errorf("%s: it counts", what)
		}
		want(t, what, c.verdicts(), "n mark left 0, never; passed false")
	}
}

// A call whose time was spent before is one that the store did not answer, whatever it asks.
func TestFail(t *testing.T) {
	for what, ask := range asks {
		w := newWorld(t)
		w.Store, w.Turns = nil, nil
		c := w.open().add(by{Rule: hard("n", perDay(9)), cost: 4})
		c.Fail(errAway)
		ask(c)
		charges := what != "look" && what != "ask"
		want(t, what, c.verdicts(), fmt.Sprint("n/0 failed; passed ", charges))
		want(t, what+", noticed", w.take(), "n failed: away")
	}
}
