package engine_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/accesslimit/accesslimit/core/internal/algorithm"
	"github.com/accesslimit/accesslimit/core/internal/engine"
	"github.com/accesslimit/accesslimit/core/internal/marks"
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
	rule := by{Rule: hard("n", perDay(3), perHour(5)), own: ptr("n", perDay(9)), cost: 4}
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
}

// Reserve takes a turn that comes within patience.
func TestReserve(t *testing.T) {
	w := newWorld(t)
	n := by{Rule: hard("n", bucket(1, 1)), reserves: true}
	for _, test := range []struct {
		patience, wait int64
		passed         bool
	}{{0, 0, true}, {hour - 1, hour, false}, {hour, hour, true}} {
		c := w.open().add(n)
		fits := c.Reserve(background, test.patience)
		if wait := c.Verdict(0).Wait; !fits || wait != test.wait || c.Passed() != test.passed {
			t.Errorf("%+v: fits %t, wait %d, passed %t", test, fits, wait, c.Passed())
		}
	}
}

// A refusal that is remembered is repeated, unless a mark or the cost is what refuses the call.
func TestRecall(t *testing.T) {
	w := newWorld(t)
	m := &memory{store: w.store}
	w.Refusals = m
	n := by{Rule: hard("n", perDay(1))}
	if w.open().add(n).Recall() {
		t.Error("recalled nothing")
	}
	m.recalled = []algorithm.Verdict{{From: algorithm.FromRefusal, RetryAfter: hour}}
	c := w.open().add(n)
	if !c.Recall() || c.Outcome(0) != engine.LimitExceeded {
		t.Errorf("outcome %d", c.Outcome(0))
	}
	want(t, "recalled", c.verdicts(), "n/0 left 0, in 1h; passed false")
	if c.add(by{Rule: hard("m", perDay(1)), cost: 2}); c.Recall() {
		t.Error("recalled a call that is too costly")
	}
	n.mark, n.lasts = marks.Banned, 3*hour
	if c = w.open().add(n); !c.Recall() {
		t.Error("a ban is not known")
	}
	want(t, "banned", c.verdicts(), "n mark left 0, in 3h; passed false")
	if len(w.store.asked) > 0 || w.noticed != nil {
		t.Errorf("asked %q, noticed %q", w.store.asked, w.noticed)
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
