package engine_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/accesslimit/accesslimit/core/internal/algorithm"
	"github.com/accesslimit/accesslimit/core/internal/engine"
)

// The store is asked once for all counters, and with a lease only for one that is alone.
func TestQuestions(t *testing.T) {
	leased := with(hard("n", perDay(3)), func(r *engine.Rule) { r.Lease = 9 })
	warned := hard("n", perDay(3))
	warned.Warn = []float64{0.5}
	two, costly := []by{{Rule: leased}, {Rule: hard("m", perDay(1))}}, []by{{Rule: leased}, {Rule: hard("m", perDay(1)), cost: 2}}
	for _, test := range []struct {
		rules []by
		ask   func(c *call) bool
		want  string
		fits  bool
	}{
		{[]by{{Rule: leased}}, func(c *call) bool { return c.Decide(background) }, "decide 1, charge true, lease 9", true},
		{two, func(c *call) bool { return c.Decide(background) }, "decide 2, charge true, lease 0", true},
		{[]by{{Rule: warned}, {Rule: leased}}, func(c *call) bool { return c.Decide(background) }, "decide 1, charge true, lease 0", true},
		{nil, func(c *call) bool { return c.Decide(background) }, "", true},
		{costly, func(c *call) bool { return c.Decide(background) }, "", false},
		{[]by{{Rule: leased}}, func(c *call) bool { return c.Look(background) }, "look", true},
		{nil, func(c *call) bool { return c.Look(background) }, "", true},
		{costly, func(c *call) bool { return c.Look(background) }, "", false},
		{two, func(c *call) bool { return c.Ask(background) }, "decide 2, charge false, lease 0", true},
		{nil, func(c *call) bool { return c.Ask(background) }, "", true},
		{costly, func(c *call) bool { return c.Ask(background) }, "", false},
		{nil, func(c *call) bool { return c.Reserve(background, 0) }, "", true},
		{costly, func(c *call) bool { return c.Reserve(background, 0) }, "", false},
	} {
		w := newWorld(t)
		w.Refusals = &memory{store: w.store}
		c := w.open().add(test.rules...)
		fits := test.ask(c)
		if got := strings.Join(w.store.asked, ", "); got != test.want || fits != test.fits {
			t.Errorf("asked %q, fits %t; want %q, %t", got, fits, test.want, test.fits)
		}
		if passed := strings.Contains(test.want, "charge true"); c.Passed() != passed {
			t.Errorf("passed %t after %q", c.Passed(), test.want)
		}
	}
	w := newWorld(t)
	w.open().add(two...).Look(background)
	want(t, "without a memory", strings.Join(w.store.asked, ", "), "decide 2, charge false, lease 0")
}

// Only Decide charges, and a call that was looked at did not pass.
func TestLook(t *testing.T) {
	for range 2 {
		w := newWorld(t)
		c := w.open().add(by{Rule: hard("n", perDay(1))})
		c.Look(background)
		want(t, "a look", c.verdicts(), "n/0 left 1; passed false")
		c.Ask(background)
		want(t, "a question", c.verdicts(), "n/0 left 1; passed false")
		if c.Decide(background); !c.Fit() {
			t.Error("a charge does not fit")
		}
		want(t, "a charge", c.verdicts(), "n/0 left 0; passed true")
		if c.Decide(background); c.Fit() {
			t.Error("one more fits")
		}
		want(t, "one more", c.verdicts(), "n/0 left 0, in 24h; passed false")
	}
}

// DecideUpTo charges what fits, and returns 1 if nothing does.
func TestDecideUpTo(t *testing.T) {
	w := newWorld(t)
	w.override("n", overrides(perDay(3))["9"])
	rule := by{Rule: obeying(hard("n", perDay(3), perHour(5))), cost: 4}
	for _, test := range []struct {
		granted  int64
		verdicts string
	}{
		{4, "n/0 left 5; n/1 left 1; passed true"}, {1, "n/0 left 4; n/1 left 0; passed true"}, {1, "n/0 left 4; n/1 left 0, in 1h; passed false"},
	} {
		c := w.open().add(rule)
		if granted := c.DecideUpTo(background); granted != test.granted {
			t.Errorf("%d granted, want %d", granted, test.granted)
		}
		want(t, "verdicts", c.verdicts(), test.verdicts)
	}
	w.override("n", overrides(perDay(3))["unlimited"])
	c := w.open().add(rule)
	if granted := c.DecideUpTo(background); granted != 4 || c.Len() != 0 {
		t.Errorf("%d granted, %s", granted, c.verdicts())
	}
}

// Reserve takes a turn that comes within patience.
func TestReserve(t *testing.T) {
	w := newWorld(t)
	n := by{Rule: obeying(hard("n", bucket(1, 1))), reserves: true}
	for _, test := range []struct {
		patience, cost int64
		fits           bool
		wait           int64
		passed         bool
	}{{0, 1, true, 0, true}, {hour - 1, 1, true, hour, false}, {hour, 1, true, hour, true}, {9 * hour, 11, false, 0, false}} {
		n.cost = test.cost
		c := w.open().add(n)
		fits := c.Reserve(background, test.patience)
		if wait := c.Verdict(0).Wait; fits != test.fits || wait != test.wait || c.Passed() != test.passed {
			t.Errorf("%+v: fits %t, wait %d, passed %t", test, fits, wait, c.Passed())
		}
		if a := c.Costly().By; (a == nil) != fits {
			t.Errorf("%+v: costly by %+v", test, a)
		}
	}
}

// A refusal that is remembered is repeated with its bans, unless the cost is what refuses the call.
func TestRecall(t *testing.T) {
	w := newWorld(t)
	m := &memory{store: w.store}
	w.Refusals = m
	n := by{Rule: banning(hard("n", perDay(1)))}
	if w.open().add(n).Recall() {
		t.Error("recalled nothing")
	}
	m.recalled = []algorithm.Verdict{{From: algorithm.FromRefusal, RetryAfter: hour}, {From: algorithm.FromRefusal, RetryAfter: 3 * hour}}
	c := w.open().add(n)
	if !c.Recall() || c.Outcome(0) != engine.Banned {
		t.Errorf("outcome %d", c.Outcome(0))
	}
	want(t, "recalled", c.verdicts(), "n/0 left 0, in 3h, banned; n ban left 0, in 3h; passed false")
	if c.add(by{Rule: hard("m", perDay(1)), cost: 2}); c.Recall() {
		t.Error("recalled a call that is too costly")
	}
	if len(w.store.asked) > 0 || w.noticed != nil {
		t.Errorf("asked %q, noticed %q", w.store.asked, w.noticed)
	}
}

// A ban in force is reported by the first limit that it watches, and by itself if it watches none.
func TestBans(t *testing.T) {
	n := by{Rule: banning(hard("n", perDay(1), perHour(1)))}
	m := by{Rule: hard("m", perDay(9))}
	free := n
	free.free = true
	w := newWorld(t)
	for _, test := range []struct {
		what              string
		rules             []by
		counters          string
		verdicts, noticed string
	}{
		{"a call", []by{m, n}, "m/0 1 of 9; n/0 1 of 1; n/1 1 of 1; n ban 0 of 0, watches [1 2]", "m/0 left 8; n/0 left 0; n/1 left 0; n ban left 0; passed true", ""},
		{"a refusal", []by{n}, "n/0 1 of 1; n/1 1 of 1; n ban 0 of 0, watches [0 1]", "n/0 left 0, in 24h, banned; n/1 left 0, in 1h; n ban left 0, in 24h; passed false", "n ban banned"},
		{"a free call", []by{m, free}, "m/0 1 of 9; n ban 0 of 0", "m/0 left 8; n ban left 0, in 24h, banned; passed false", "n ban banned"},
		{"one ban of two rules", []by{n, m, n}, "n/0 1 of 1, both 1+1, with 0; n/1 1 of 1, both 1+1, with 0; n ban 0 of 0, watches [0 1]; m/0 1 of 9", "n/0 left 0, in 24h, banned; n/1 left 0, in 1h; n ban left 0, in 24h; m/0 left 8; passed false", "n ban banned"},
		{"of a free one first", []by{free, n}, "n ban 0 of 0, watches [1 2]; n/0 1 of 1; n/1 1 of 1", "n ban left 0, in 24h; n/0 left 0, in 24h, banned; n/1 left 0, in 1h; passed false", "n ban banned"},
		{"one ban of two limits", []by{n, {Rule: banning(hard("n", windows(algorithm.FixedWindow, 9, 2*day)))}}, "n/0 1 of 1; n/1 1 of 1; n ban 0 of 0, watches [0 1 3]; n/0 1 of 9", "n/0 left 0, in 24h, banned; n/1 left 0, in 1h; n ban left 0, in 24h; n/0 left 9; passed false", "n ban banned"},
		{"another subject", []by{{Rule: n.Rule, subject: "b"}}, "n/0 1 of 1; n/1 1 of 1; n ban 0 of 0, watches [0 1]", "n/0 left 0; n/1 left 0; n ban left 0; passed true", ""},
	} {
		c := w.open().add(test.rules...)
		want(t, test.what, c.counters(), test.counters)
		c.Decide(background)
		want(t, test.what, c.verdicts(), test.verdicts)
		want(t, test.what+", noticed", w.take(), test.noticed)
		for i := range c.Len() {
			if a := c.Limit(i); a.Silent() != (a.IsBan && !a.Banned) || a.Shown() != (!a.Silent() && !a.Rule.Soft) {
				t.Errorf("%s: %s is silent %t, shown %t", test.what, c.limitName(i), a.Silent(), a.Shown())
			}
		}
	}
}

// The limit that reports a ban keeps a longer wait of its own. A ban that the store did not answer
// for, and that refuses the call, reports itself.
func TestReportedBans(t *testing.T) {
	required := by{Rule: with(banning(hard("n", perDay(1))), func(r *engine.Rule) { r.Required, r.LocalShare = true, .5 })}
	w := newWorld(t)
	c := w.open().add(required)
	want(t, "asked", c.counters(), "n/0 1 of 1, required, share 0.5; n ban 0 of 0, required, share 0.5, watches [0]")
	w.store.answers = []algorithm.Verdict{{RetryAfter: 5 * hour, Remaining: 1}, {RetryAfter: hour, From: algorithm.FromRefusal}}
	c.Decide(background)
	want(t, "a longer wait", c.verdicts(), "n/0 left 0, in 5h, banned; n ban left 0, in 1h; passed false")
	c.ReportBans()
	want(t, "an answer", c.verdicts(), "n/0 left 0, in 5h, banned; n ban left 0, in 1h; passed false")
	w.store.answers = []algorithm.Verdict{{Remaining: 1}, {Err: errAway}}
	for name, r := range map[string]by{"required": required, "not required": {Rule: banning(hard("n", perDay(1)))}, "no ban": {Rule: with(hard("n", perDay(1), perHour(1)), func(r *engine.Rule) { r.Required = true })}} {
		c := w.open().add(r)
		c.Decide(background)
		c.ReportBans()
		if c.Limit(1).Banned != (name == "required") || c.Limit(0).Banned {
			t.Errorf("%s: %s", name, c.verdicts())
		}
	}
}

// Each rule that the store did not answer for is reported once. A rule that is required stops the
// call.
func TestFailures(t *testing.T) {
	w := newWorld(t)
	rules := []by{{Rule: hard("n", slots(1), perDay(1), perHour(1))}, {Rule: hard("m", perDay(1), perHour(1))}}
	failed := algorithm.Verdict{Err: errAway}
	for _, test := range []struct {
		answers []algorithm.Verdict
		passed  bool
		noticed string
	}{
		{[]algorithm.Verdict{{}, {}, {}, {}, {}}, true, ""},
		{[]algorithm.Verdict{{}, {RetryAfter: 1}, {}, {}, {}}, false, ""},
		{[]algorithm.Verdict{failed, failed, {}, {}, failed}, true, "n failed: away, m failed: away"},
		{[]algorithm.Verdict{{}, {}, failed, failed, {}}, true, "n failed: away, m failed: away"},
		{[]algorithm.Verdict{{}, {}, {}, {}, {From: algorithm.FromLocal, Instead: errAway}}, true, "m failed: away"},
		{[]algorithm.Verdict{{}, {}, {}, {Ended: errAway}, {}}, false, ""},
	} {
		w.store.answers = test.answers
		c := w.open().add(rules...)
		if fits := c.Decide(background); !fits || c.Passed() != test.passed {
			t.Errorf("%+v: passed %t", test.answers, c.Passed())
		}
		want(t, fmt.Sprint(test.answers), w.take(), test.noticed)
		wantEnded := slices.IndexFunc(test.answers, func(v algorithm.Verdict) bool { return v.Ended != nil })
		if at := c.Ended(); at != wantEnded {
			t.Errorf("%+v: ended at %d, want %d", test.answers, at, wantEnded)
		}
	}
	w.store.answers = []algorithm.Verdict{failed}
	c := w.open().add(by{Rule: with(hard("n", perDay(1)), func(r *engine.Rule) { r.Required = true })})
	if c.Decide(background); c.Passed() || c.OverLimit() {
		t.Error("a required rule let the call pass, or refused it for a limit")
	}
	want(t, "without slots", w.take(), "n failed: away")
}

// Only rules that refuse are over their limit.
func TestOverLimit(t *testing.T) {
	w := newWorld(t)
	w.store.answers = []algorithm.Verdict{{}, {RetryAfter: 1}}
	for _, r := range []*engine.Rule{hard("m", perDay(1)), soft("m", perDay(1))} {
		c := w.open().add(by{Rule: hard("n", perDay(1))}, by{Rule: r})
		if c.Look(background); c.OverLimit() != !r.Soft || c.HasSoft() != r.Soft {
			t.Errorf("soft %t: over the limit %t, soft %t", r.Soft, c.OverLimit(), c.HasSoft())
		}
	}
}
