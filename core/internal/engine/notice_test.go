package engine_test

import (
	"testing"

	"github.com/accesslimit/accesslimit/core/internal/algorithm"
	"github.com/accesslimit/accesslimit/core/internal/engine"
)

// The decision of each rule is noticed once, by the limit that represents it, or by the one that the
// call was answered with.
func TestNotice(t *testing.T) {
	two := hard("n", perDay(9), perHour(9))
	further := hard("n", windows(algorithm.FixedWindow, 9, 2*day))
	type verdicts = []algorithm.Verdict
	left := func(n int64) algorithm.Verdict { return algorithm.Verdict{Remaining: n} }
	for _, test := range []struct {
		rules   []*engine.Rule
		answers verdicts
		want    string
	}{
		{[]*engine.Rule{two, hardM}, verdicts{left(9), left(5), left(4)}, "m/0 decided 0 usual bound, n/1 decided 0 usual"},
		{[]*engine.Rule{hardM, two, further}, verdicts{left(9), left(5), left(4), left(3)}, "n/0 decided 0 usual bound, m/0 decided 0 usual"},
		{[]*engine.Rule{hardM, two}, verdicts{left(9), left(5), refused}, "n/1 decided 1 bound refused, m/0 decided 0 usual"},
		{[]*engine.Rule{hardM, two}, verdicts{left(9), nobody, refused}, "n/1 decided 1 bound refused, m/0 decided 0 usual"},
		{[]*engine.Rule{hardM, two}, verdicts{refused, nobody, nobody}, "m/0 decided 1 bound refused"},
		{[]*engine.Rule{hardN, softS}, verdicts{left(5), refused}, "s/0 decided 4 bound refused, n/0 decided 0 usual"},
		{[]*engine.Rule{hardN}, verdicts{nobody}, ""},
		{[]*engine.Rule{hardN, hardM}, verdicts{away, {Remaining: 5, From: algorithm.FromLease}}, "n failed: away, m/0 decided 0 bound, n/0 decided 5"},
		{[]*engine.Rule{requiredQ}, verdicts{away}, "q failed: away, q/0 decided 6 bound"},
		{[]*engine.Rule{hardN}, verdicts{{Remaining: 5, From: algorithm.FromRefusal, RetryAfter: 1}}, "n/0 decided 1 bound refused"},
		{[]*engine.Rule{hardN}, verdicts{left(2)}, "n/0 decided 0 usual bound"},
		{[]*engine.Rule{hardN}, verdicts{left(1)}, "n/0 decided 0 usual bound near"},
		{[]*engine.Rule{two, hardM}, verdicts{{Remaining: 1, ResetAfter: 1}, left(1), left(1)}, "n/0 decided 0 usual bound near, m/0 decided 0 usual near"},
		{[]*engine.Rule{hardM, hard("n", perDay(100), perHour(10))}, verdicts{left(9), left(15), left(5)}, "n/1 decided 0 usual bound near, m/0 decided 0 usual"},
		{[]*engine.Rule{hardM, hardN}, verdicts{left(1), left(5)}, "m/0 decided 0 usual bound near, n/0 decided 0 usual"},
		{[]*engine.Rule{hardM, hardN}, verdicts{left(1), refused}, "n/0 decided 1 bound refused, m/0 decided 0 usual"},
		{[]*engine.Rule{hardM, soft("s", perDay(9), perHour(9))}, verdicts{left(5), left(0), {RetryAfter: 1}}, "s/1 decided 4 bound refused, m/0 decided 0 usual"},
		{[]*engine.Rule{hardM, soft("s", perDay(9), perHour(9))}, verdicts{left(5), left(0), away}, "s failed: away, m/0 decided 0 usual bound, s/0 decided 0 usual near"},
	} {
		c := newWorld(t).ask(test.answers, test.rules...)
		c.Notice(c.Binding())
		want(t, "noticed", c.of.take(), test.want)
	}
	c := newWorld(t).open().add(by{Rule: hard("n", perDay(9)), cost: 9})
	c.Look(background)
	c.Notice(0)
	want(t, "a look", c.of.take(), "n/0 decided 0 usual bound")
}

// The charges of a call that passed are noticed, with what all rules of a counter warn of.
func TestCharges(t *testing.T) {
	warning := func(r *engine.Rule, fractions ...float64) *engine.Rule {
		r.Warn = fractions
		return r
	}
	n, soft := warning(hard("n", perDay(9), perHour(9)), .5), warning(soft("s", perDay(2)), .9)
	for _, test := range []struct {
		rules []*engine.Rule
		want  string
	}{
		{[]*engine.Rule{hardM, n}, "n/0 charged, [0.5], n/1 charged, [0.5], m/0 decided 0 usual bound, n/0 decided 0 usual"},
		{[]*engine.Rule{soft}, "s/0 charged, [0.9], s/0 decided 0 usual bound"},
		{[]*engine.Rule{warning(hard("m", perDay(9)), .25, .75), hardM, warning(hard("m", perDay(9)), .5, .75)}, "m/0 charged, [0.25 0.5 0.75], m/0 decided 0 usual bound"},
		{[]*engine.Rule{hardM, warning(hard("m", perDay(9)), .5)}, "m/0 charged, [0.5], m/0 decided 0 usual bound"},
		{[]*engine.Rule{warning(hard("m", perDay(9)), .5), hardM}, "m/0 charged, [0.5], m/0 decided 0 usual bound"},
		{[]*engine.Rule{warning(hard("m", perDay(9)), .5), warning(hard("m", perDay(9)), .5)}, "m/0 charged, [0.5], m/0 decided 0 usual bound"},
	} {
		w := newWorld(t)
		c := w.ask(nil, test.rules...)
		c.Notice(c.Binding())
		want(t, "noticed", w.take(), test.want)
		c = w.open().add(by{Rule: n})
		c.Look(background)
		c.Notice(c.Binding())
		want(t, "a look", w.take(), "n/0 decided 0 usual bound")
	}
}

// A limit is near if a charge left a fifth of it or less. A count of this process by itself is not.
func TestNear(t *testing.T) {
	limit := perDay(10)
	for _, test := range []struct {
		verdict algorithm.Verdict
		near    bool
	}{
		{algorithm.Verdict{Remaining: 3}, false},
		{algorithm.Verdict{Remaining: 2}, true},
		{algorithm.Verdict{Remaining: 2, From: algorithm.FromLease}, true},
		{algorithm.Verdict{Remaining: 2, From: algorithm.FromLocal}, false},
		{algorithm.Verdict{Remaining: 2, From: algorithm.FromRefusal}, false},
		{algorithm.Verdict{RetryAfter: 1}, false},
		{algorithm.Verdict{Err: errAway}, false},
	} {
		if near := engine.IsNear(&algorithm.Counter{Limit: limit.Compiled}, &test.verdict); near != test.near {
			t.Errorf("%+v: near %t", test.verdict, near)
		}
	}
	if share := engine.ShareInUse(&algorithm.Counter{Limit: limit.Compiled}, &algorithm.Verdict{Remaining: 2}); share != .8 {
		t.Errorf("%v in use", share)
	}
}

// The largest share is that of the fullest limit of a rule, and of those of one name.
func TestMostUsed(t *testing.T) {
	two := hard("n", perDay(10), perHour(10))
	further := hard("n", windows(algorithm.FixedWindow, 10, 2*day))
	c := newWorld(t).ask([]algorithm.Verdict{{Remaining: 2}, {Remaining: 1}, {Remaining: 0}, {Remaining: 5}, {Remaining: 2}},
		two, hard("m", perDay(10)), hard("k", perDay(10)), further)
	for i, want := range []float64{.9, .9, 1, 0, .9} {
		if used := c.MostUsed(i); used != want {
			t.Errorf("%v of %s in use, want %v", used, c.limitName(i), want)
		}
	}
}
