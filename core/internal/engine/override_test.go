package engine_test

import (
	"testing"

	"github.com/accesslimit/accesslimit/core/internal/algorithm"
	"github.com/accesslimit/accesslimit/core/internal/engine"
)

// overrides are those that an operator may set for rules with the limit.
func overrides(limit engine.Limit) map[string]algorithm.Override {
	made := func(most int64) algorithm.Override {
		o, err := limit.Compiled.Override(most, 0)
		if err != nil {
			panic(err)
		}
		return o
	}
	invalid := made(5)
	invalid.Max = 0
	return map[string]algorithm.Override{
		"1": made(1), "9": made(9), "invalid": invalid,
		"unlimited": {What: algorithm.OverrideUnlimited}, "blocked": {What: algorithm.OverrideBlocked},
		"of another": {What: algorithm.OverrideLimit, Max: 3, Span: "fw1:7"},
	}
}

// An override for a subject decides before plans and rules. Counters that it lifts are
// removed, as if the call had never had them.
func TestOverrides(t *testing.T) {
	n := obeying(hard("n", perDay(3), perHour(5)))
	m := by{Rule: hard("m", perDay(7))}
	for _, test := range []struct {
		override string
		rules    []by
		want     string
		noticed  string
	}{
		{"", []by{{Rule: n}}, "n/0 left 2; n/1 left 4; passed true", ""},
		{"", []by{{Rule: n, unlimited: true}, m}, "m/0 left 6; passed true", ""},
		{"", []by{{Rule: n, free: true}, m}, "m/0 left 6; passed true", ""},
		{"", []by{{Rule: n, own: ptr("n", perDay(4))}}, "n/0 left 3; n/1 left 4; passed true", ""},
		{"", []by{{Rule: n, cost: algorithm.LargestCost}}, "n/0 left 0; n/1 left 2; passed true", ""},
		{"9", []by{{Rule: n}}, "n/0 left 8; n/1 left 4; passed true", ""},
		{"9", []by{{Rule: n, cost: algorithm.LargestCost}}, "n/0 left 4; n/1 left 0; passed true", ""},
		{"9", []by{{Rule: n, unlimited: true}}, "n/0 left 8; n/1 left 4; passed true", ""},
		{"9", []by{{Rule: n, free: true}, m}, "m/0 left 6; passed true", ""},
		{"9", []by{{Rule: banning(obeying(hard("n", perDay(3)))), free: true}}, "n ban left 0; passed true", ""},
		{"1", []by{{Rule: n, own: ptr("n", perDay(4))}}, "n/0 left 0; n/1 left 4; passed true", ""},
		{"9", []by{{Rule: obeying(soft("n", perDay(3))), cost: 5}}, "n/0 left 4; passed true", ""},
		{"1", []by{{Rule: obeying(soft("n", perDay(3))), cost: 2}}, "n/0 left 0, never; passed true", ""},
		{"unlimited", []by{{Rule: n}, m}, "m/0 left 6; passed true", ""},
		{"unlimited", []by{m, {Rule: banning(obeying(hard("n", perDay(3))))}}, "m/0 left 6; n ban left 0; passed true", ""},
		{"unlimited", []by{{Rule: n, cost: 99}}, "passed true", ""},
		{"blocked", []by{{Rule: n}, m}, "n/0 left 0, never; passed false", ""},
		{"blocked", []by{m, {Rule: n, cost: 99}, {Rule: obeying(hard("m", perHour(1))), cost: 99}}, "n/0 left 0, never; passed false", ""},
		{"blocked", []by{{Rule: n, free: true}}, "n/0 left 0, never; passed false", ""},
		{"blocked", []by{{Rule: n, unlimited: true}}, "n/0 left 0, never; passed false", ""},
		{"blocked", []by{{Rule: banning(obeying(hard("n", perDay(3))))}}, "n/0 left 0, never; passed false", ""},
		{"blocked", []by{{Rule: obeying(soft("n", perDay(3), perHour(5)))}, m}, "n/0 left 0, never; m/0 left 6; passed true", ""},
		{"blocked", []by{{Rule: obeying(soft("n", perDay(3))), free: true}}, "n/0 left 0, never; passed true", ""},
		{"invalid", []by{{Rule: n}, m}, "n/0 left 2; n/1 left 4; m/0 left 6; passed true", "n ignores: is not an override that this library wrote"},
		{"of another", []by{{Rule: n}}, "n/0 left 2; n/1 left 4; passed true", "n ignores: was made for another window or algorithm"},
		{"of another", []by{{Rule: n, unlimited: true}}, "passed true", "n ignores: was made for another window or algorithm"},
	} {
		w := newWorld(t)
		if test.override != "" {
			w.override("n", overrides(perDay(3))[test.override])
		}
		c := w.open().add(test.rules...)
		if !c.MayBeOverridden() {
			t.Errorf("%+v asked for no override", test)
		}
		if !c.Decide(background) {
			t.Errorf("%+v is costly", test)
		}
		want(t, test.override, c.verdicts(), test.want)
		want(t, test.override+", noticed", w.take(), test.noticed)
	}
}

// The rule is costly whose limit in force the cost never fits into. Nothing is charged then.
func TestCostsAboveOverrides(t *testing.T) {
	w := newWorld(t)
	w.override("n", overrides(perDay(3))["1"])
	c := w.open().add(by{Rule: hard("m", perDay(7))}, by{Rule: obeying(hard("k", perDay(7), perHour(2))), cost: 3}, by{Rule: obeying(hard("n", perDay(3))), cost: 2})
	for range 2 {
		if c.Decide(background) {
			t.Fatal(c.verdicts())
		}
		if by := c.Costly(); by.By == nil || by.By.Rule.Name != "k" || by.At != 2 || by.N != 1 || by.Most != 2 || c.Passed() || c.Limit(by.At).N != 1 {
			t.Fatalf("costly by %+v", by)
		}
		c.Drop()
		c.Add(c.applied[0])
		c.Add(c.applied[1])
	}
	c.Clear()
	c.add(by{Rule: hard("m", perDay(7))}).Decide(background)
	want(t, "the next call", c.verdicts(), "m/0 left 6; passed true")
}

// found describes what replaces the limits of a call.
func found(c *call) (all string) {
	for i := range c.Len() {
		if f := c.Override(i); f != nil {
			all += c.limitName(i) + map[algorithm.OverrideKind]string{0: " none ", 1: " another ", 3: " blocked "}[f.What]
		}
	}
	return all
}

// An override replaces the rule's own limit, and no further one, and is known of that.
func TestWhatIsOverridden(t *testing.T) {
	w := newWorld(t)
	rules := []by{{Rule: hard("m", perDay(7))}, {Rule: obeying(hard("n", perDay(3), perHour(5)))}, {Rule: obeying(hard("k", perDay(3)))}}
	w.override("n", overrides(perDay(3))["9"])
	c := w.open()
	c.add(rules...).Decide(background)
	want(t, "a limit", found(c), "n/0 another k/0 none ")
	if c.Counter(1).Limit.Max != 9 || c.Counter(2).Limit.Max != 5 || c.Override(0) != nil {
		t.Errorf("%s", c.counters())
	}
	w.override("n", overrides(perDay(3))["blocked"])
	c.Clear()
	c.add(rules...).Decide(background)
	want(t, "a block", found(c), "n/0 blocked ")
	c.Clear()
	w.override("n", overrides(perDay(3))["unlimited"])
	c.add(rules[1], by{Rule: banning(hard("b", perDay(1)))}).Decide(background)
	want(t, "places that have changed", c.counters(), "b/0 1 of 1; b ban 0 of 0, watches [0]")
	c.Clear()
	if c.add(rules[0]); c.MayBeOverridden() || c.Override(0) != nil {
		t.Error("a rule without overrides has one")
	}
}

// Two rules with one counter are lifted by their plan only if both are, and counted if one of them
// costs, by the limit of that one.
func TestOneOverrideForTwoRules(t *testing.T) {
	n := obeying(hard("n", perDay(3)))
	for name, test := range map[string]struct {
		rules          []by
		counters, want string
	}{
		"both unlimited":      {[]by{{Rule: n, unlimited: true}, {Rule: n, unlimited: true}}, "n/0 1 of 3, both 3+3, obeys, own, spared, with 0", "passed true"},
		"the first unlimited": {[]by{{Rule: n, unlimited: true}, {Rule: n}}, "n/0 1 of 3, obeys, own", "n/0 left 2; passed true"},
		"the later unlimited": {[]by{{Rule: n}, {Rule: n, unlimited: true}}, "n/0 1 of 3, obeys, own", "n/0 left 2; passed true"},
		"no limit, and one":   {[]by{{Rule: n, unlimited: true, cost: 2}, {Rule: n, own: ptr("n", perDay(9))}}, "n/0 1 of 9, obeys, own", "n/0 left 8; passed true"},
		"one, and no limit":   {[]by{{Rule: n, own: ptr("n", perDay(9))}, {Rule: n, unlimited: true, cost: 12}}, "n/0 1 of 9, obeys, own", "n/0 left 8; passed true"},
		"free before a cost":  {[]by{{Rule: n, free: true}, {Rule: n, cost: 2, own: ptr("n", perDay(9))}}, "n/0 2 of 9, obeys, own", "n/0 left 7; passed true"},
		"free after a cost":   {[]by{{Rule: n, cost: 2, own: ptr("n", perDay(9))}, {Rule: n, free: true}}, "n/0 2 of 9, obeys, own", "n/0 left 7; passed true"},
		"both free":           {[]by{{Rule: n, free: true}, {Rule: n, free: true}}, "n/0 0 of 3, both 3+3, obeys, own, spared, with 0", "passed true"},
	} {
		c := newWorld(t).open().add(test.rules...)
		want(t, name, c.counters(), test.counters)
		c.Decide(background)
		want(t, name, c.verdicts(), test.want)
	}
}

// While the store is away, what is left to decide are blocks that are known, and what other servers
// answered does not count beside them.
func TestOverridesInAnOutage(t *testing.T) {
	blocked := algorithm.FoundOverride{What: algorithm.OverrideBlocked}
	n := obeying(hard("n", perDay(3)))
	rules := []by{{Rule: n}, {Rule: hard("m", perDay(7))}, {Rule: obeying(soft("s", perDay(3))), subject: "b"}}
	for name, test := range map[string]struct {
		found         algorithm.FoundOverride
		answers       []algorithm.Verdict
		want, noticed string
	}{
		"nobody answers":      {answers: []algorithm.Verdict{{Err: errAway}, {Remaining: 1}, {}}, want: "n/0 failed; m/0 left 1; s/0 left 0; passed true", noticed: "n failed: away"},
		"the caller leaves":   {answers: []algorithm.Verdict{{Ended: errAway}, {Ended: errAway}, {Ended: errAway}}, want: "n/0 failed; m/0 failed; s/0 failed; passed false"},
		"lifted here":         {answers: []algorithm.Verdict{{From: algorithm.FromNobody, Instead: errAway}, {Remaining: 1}, {}}, want: "m/0 left 1; s/0 left 0; passed true", noticed: "n failed: away"},
		"not asked":           {answers: []algorithm.Verdict{{From: algorithm.FromNobody}, {Remaining: 1}, {}}, want: "m/0 left 1; s/0 left 0; passed true"},
		"a block":             {blocked, []algorithm.Verdict{{RetryAfter: hour, Blocked: true}, {Remaining: 1}, {Err: errAway}}, "n/0 left 0, in 1h; s/0 failed; passed false", "s failed: away"},
		"a block known here":  {blocked, []algorithm.Verdict{{RetryAfter: hour, Blocked: true, From: algorithm.FromLocal, Instead: errAway}, {From: algorithm.FromLocal, Instead: errAway}, {RetryAfter: hour, Blocked: true}}, "n/0 left 0, in 1h; m/0 left 0; s/0 left 0, in 1h; passed false", "n failed: away, m failed: away"},
		"a block, a caller":   {blocked, []algorithm.Verdict{{RetryAfter: hour, Blocked: true}, {Ended: errAway}, {Ended: errAway}}, "n/0 left 0, in 1h; m/0 failed; s/0 failed; passed false", ""},
		"no block, as before": {answers: []algorithm.Verdict{{RetryAfter: hour}, {Remaining: 1}, {}}, want: "n/0 left 0, in 1h; m/0 left 1; s/0 left 0; passed false"},
	} {
		w := newWorld(t)
		w.store.answers, w.store.found = test.answers, test.found
		c := w.open().add(rules...)
		c.Decide(background)
		want(t, name, c.verdicts(), test.want)
		want(t, name, w.take(), test.noticed)
	}
	w := newWorld(t)
	w.store.answers, w.store.found = []algorithm.Verdict{{}}, algorithm.FoundOverride{What: algorithm.OverrideLimit, Max: 9}
	c := w.open().add(rules[0])
	c.Decide(background)
	want(t, "a limit that another process found", c.counters(), "n/0 1 of 9, obeys, own")
}

// A block goes before a cost that never fits. Only rules from which a subject may be blocked are
// asked then, nothing is charged, and if nobody is blocked, the first cost refuses the call.
func TestABlockBesideACost(t *testing.T) {
	costly := by{Rule: hard("costly", perDay(1)), cost: 2}
	n, other := by{Rule: obeying(hard("n", perDay(3)))}, by{Rule: obeying(hard("k", perDay(1))), cost: 2}
	ask := func(charge func(*call) bool) {
		for name, test := range map[string]struct {
			rules   []by
			blocked bool
			want    string
			asked   int
		}{
			"nobody can be":     {[]by{{Rule: hard("m", perDay(7))}, costly, {Rule: obeying(soft("n", perDay(3)))}}, true, "costly passed false", 0},
			"a further limit":   {[]by{n, {Rule: hard("costly", perDay(5), perHour(1)), cost: 2}}, false, "costly n/0 left 3; passed false", 1},
			"nobody is":         {[]by{{Rule: hard("m", perDay(7))}, n, costly}, false, "costly n/0 left 3; passed false", 1},
			"somebody is":       {[]by{{Rule: hard("m", perDay(7))}, costly, n}, true, "n/0 left 0, never; passed false", 1},
			"beside two costs":  {[]by{costly, other, n}, true, "n/0 left 0, never; passed false", 1},
			"two costs":         {[]by{costly, other, n}, false, "costly k/0 left 0, never; n/0 left 0; passed false", 1},
			"another may be":    {[]by{{Rule: n.Rule, subject: "b"}, costly}, true, "costly n/0 left 3; passed false", 1},
			"soft ones may not": {[]by{costly, {Rule: obeying(soft("n", perDay(3)))}, {Rule: n.Rule, subject: "b"}}, true, "costly n/0 left 3; passed false", 1},
		} {
			w := newWorld(t)
			if test.blocked {
				w.override("n", overrides(perDay(3))["blocked"])
			}
			c, got := w.open().add(test.rules...), ""
			fits := charge(c)
			if by := c.Costly(); by.By != nil {
				if got = by.By.Rule.Name + " "; by.At != -1 {
					t.Errorf("%s: costly at %d", name, by.At)
				}
			}
			if fits != (got == "") {
				t.Errorf("%s: fits %t", name, fits)
			}
			want(t, name, got+c.verdicts(), test.want)
			if len(w.store.asked) != test.asked || test.asked > 0 && w.store.asked[0] != "decide 1, charge false, lease 0" && w.store.asked[0] != "decide 2, charge false, lease 0" {
				t.Errorf("%s: the store was asked %q", name, w.store.asked)
			}
		}
	}
	ask(func(c *call) bool { return c.Decide(background) })
	ask(func(c *call) bool { return c.Look(background) })
	ask(func(c *call) bool { return c.Ask(background) })
}
