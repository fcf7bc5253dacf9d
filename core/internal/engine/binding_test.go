package engine_test

import (
	"testing"

	"github.com/accesslimit/accesslimit/core/internal/algorithm"
	"github.com/accesslimit/accesslimit/core/internal/engine"
)

// ask adds rules and asks a store that has these answers.
func (w *world) ask(answers []algorithm.Verdict, rules ...*engine.Rule) *call {
	w.store.answers = answers
	c := w.open()
	for _, r := range rules {
		c.add(by{Rule: r})
	}
	c.Decide(background)
	return c
}

var (
	fits      = algorithm.Verdict{Remaining: 5}
	refused   = algorithm.Verdict{RetryAfter: hour}
	away      = algorithm.Verdict{Err: errAway}
	nobody    = algorithm.Verdict{From: algorithm.FromNobody}
	required  = func(r *engine.Rule) { r.Required = true }
	hardN     = hard("n", perDay(9))
	hardM     = hard("m", perDay(9))
	softS     = soft("s", perDay(9))
	softR     = soft("r", perDay(9))
	requiredQ = with(hard("q", perDay(9)), required)
)

// A refusal binds more than an allowance, a longer wait more than a shorter one, a verdict more than
// a failure, few permits more than many, and the first limit of equal ones.
func TestBinding(t *testing.T) {
	type verdicts = []algorithm.Verdict
	for _, test := range []struct {
		rules   []*engine.Rule
		answers verdicts
		want    int
	}{
		{[]*engine.Rule{hardN}, verdicts{fits}, 0},
		{[]*engine.Rule{hardN}, verdicts{nobody}, -1},
		{[]*engine.Rule{softS}, verdicts{fits}, 0},
		{[]*engine.Rule{hardN, hardM}, verdicts{fits, fits}, 0},
		{[]*engine.Rule{hardN, hardM}, verdicts{fits, {Remaining: 4}}, 1},
		{[]*engine.Rule{hardN, hardM}, verdicts{{Remaining: 4}, fits}, 0},
		{[]*engine.Rule{hardN, hardM}, verdicts{fits, {Remaining: 5, ResetAfter: 1}}, 1},
		{[]*engine.Rule{hardN, hardM}, verdicts{{Remaining: 5, ResetAfter: 1}, fits}, 0},
		{[]*engine.Rule{hardN, hardM}, verdicts{fits, refused}, 1},
		{[]*engine.Rule{hardN, hardM}, verdicts{refused, {Remaining: 1}}, 0},
		{[]*engine.Rule{hardN, hardM}, verdicts{refused, {RetryAfter: 2 * hour}}, 1},
		{[]*engine.Rule{hardN, hardM}, verdicts{{RetryAfter: 2 * hour}, refused}, 0},
		{[]*engine.Rule{hardN, hardM}, verdicts{away, fits}, 1},
		{[]*engine.Rule{hardN, hardM}, verdicts{fits, away}, 0},
		{[]*engine.Rule{hardN, hardM}, verdicts{nobody, fits}, 1},
		{[]*engine.Rule{hardN, requiredQ}, verdicts{fits, away}, 1},
		{[]*engine.Rule{hardN, requiredQ}, verdicts{refused, away}, 0},
		{[]*engine.Rule{hardN, softS}, verdicts{fits, {Remaining: 1}}, 0},
		{[]*engine.Rule{hardN, softS}, verdicts{fits, refused}, 1},
		{[]*engine.Rule{hardN, softS}, verdicts{refused, refused}, 0},
		{[]*engine.Rule{softS, hardN}, verdicts{fits, fits}, 1},
		{[]*engine.Rule{softS, softR}, verdicts{fits, refused}, 1},
		{[]*engine.Rule{softS, softR}, verdicts{nobody, fits}, 1},
		{[]*engine.Rule{softS, softR, hardN}, verdicts{fits, {RetryAfter: 2 * hour}, refused}, 0}, // the store is asked about the hard rule first
		{[]*engine.Rule{softS}, verdicts{nobody}, -1},
	} {
		if at := newWorld(t).ask(test.answers, test.rules...).Binding(); at != test.want {
			t.Errorf("%d of %+v binds, want %d", at, test.answers, test.want)
		}
	}
}

// A rule is represented by the limit that binds the call most, and rules of one name count as one.
func TestRepresents(t *testing.T) {
	two := hard("n", perDay(9), perHour(9))
	other := hard("n", windows(algorithm.FixedWindow, 9, 2*day))
	type verdicts = []algorithm.Verdict
	for _, test := range []struct {
		rules   []*engine.Rule
		answers verdicts
		want    []int
	}{
		{[]*engine.Rule{two, hardM}, verdicts{fits, fits, fits}, []int{0, -1, 2}},
		{[]*engine.Rule{two, hardM}, verdicts{fits, refused, fits}, []int{1, -1, 2}},
		{[]*engine.Rule{two, hardM}, verdicts{nobody, fits, fits}, []int{1, -1, 2}},
		{[]*engine.Rule{two, hardM}, verdicts{nobody, nobody, fits}, []int{-1, -1, 2}},
		{[]*engine.Rule{two, hardM}, verdicts{fits, nobody, nobody}, []int{0, -1, -1}},
		{[]*engine.Rule{two, hardM, other}, verdicts{fits, fits, fits, refused}, []int{3, -1, 2, -1}},
		{[]*engine.Rule{hardN, soft("n", perHour(9))}, verdicts{fits, refused}, []int{0, 1}},
	} {
		c := newWorld(t).ask(test.answers, test.rules...)
		for i, at := range test.want {
			if got := c.Represents(i); got != at {
				t.Errorf("%+v: %d represents the rule at %d, want %d", test.answers, got, i, at)
			}
		}
	}
}

// The outcome of a limit, and its source, by its rule and the store's verdict.
func TestOutcome(t *testing.T) {
	for name, test := range map[string]struct {
		verdict algorithm.Verdict
		of      [2]engine.Outcome // of a rule that refuses, and of a soft one
		source  algorithm.Origin
	}{
		"fits":       {fits, [2]engine.Outcome{}, algorithm.FromStore},
		"leased":     {algorithm.Verdict{From: algorithm.FromLease}, [2]engine.Outcome{}, algorithm.FromLease},
		"refused":    {refused, [2]engine.Outcome{engine.LimitExceeded, engine.SoftExceeded}, algorithm.FromStore},
		"remembered": {algorithm.Verdict{RetryAfter: 1, From: algorithm.FromRefusal}, [2]engine.Outcome{engine.LimitExceeded, engine.SoftExceeded}, algorithm.FromRefusal},
		"failed":     {away, [2]engine.Outcome{engine.StoreFailOpen, engine.StoreFailOpen}, algorithm.FromNobody},
	} {
		for i, of := range test.of {
			c := newWorld(t).ask([]algorithm.Verdict{test.verdict}, rule("n", i == 1, perDay(9)))
			if got := c.Outcome(0); got != of || c.Source(0) != test.source {
				t.Errorf("%s, soft %t: outcome %d from %d, want %d", name, i == 1, got, c.Source(0), of)
			}
			c = newWorld(t).ask([]algorithm.Verdict{away}, with(rule("n", i == 1, perDay(9)), required))
			if closed := c.Outcome(0) == engine.StoreFailClosed; closed != (i == 0) {
				t.Errorf("soft %t, required: outcome %d", i == 1, c.Outcome(0))
			}
		}
	}
}
