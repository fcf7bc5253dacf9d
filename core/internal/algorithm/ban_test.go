package algorithm_test

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/accesslimit/accesslimit/core/internal/algorithm"
)

// byHand is the ban that a pause is kept in.
var byHand = algorithm.Banned(0, 0, 0, second)

// pauseAfter returns what a call finds: how long the pause lasts, and for how long refusals are
// remembered.
func (e *engines) pauseAfter(after int64) (lasts, remembered int64) {
	e.now += after
	v := e.decide(false, e.now, []algorithm.Counter{{Key: []byte("pause"), Limit: &byHand}})[0]
	return v.RetryAfter, v.ResetAfter
}

func TestPauseStory(t *testing.T) {
	e := newEngines(early)
	refused := func(span int64) algorithm.Paused {
		return e.pause("pause", algorithm.Pause{Span: span, Refused: true, Base: second, Longest: 5 * second})
	}
	for _, step := range []struct {
		what            string
		after           int64
		do              func() algorithm.Paused
		lasts, remember int64
		longer          bool
	}{
		{"a refusal", 0, func() algorithm.Paused { return refused(0) }, second, 6 * second, true},
		{"another one in flight", 1, func() algorithm.Paused { return refused(0) }, second - 1, 6*second - 1, false},
		{"one with a hint", 0, func() algorithm.Paused { return refused(2 * second) }, 2 * second, 7 * second, true},
		{"with an earlier end", second, func() algorithm.Paused { return refused(second / 2) }, second, 6 * second, false},
		{"after the pause, twice as long", second, func() algorithm.Paused { return refused(0) }, 2 * second, 7 * second, true},
		{"the clock stepped back", -hour, func() algorithm.Paused { return refused(0) }, 2 * second, 7 * second, false},
		{"not above the longest", 2 * second, func() algorithm.Paused { refused(0); e.now += 4 * second; return refused(0) }, 5 * second, 10 * second, true},
		{"forgotten", 10 * second, func() algorithm.Paused { return refused(0) }, second, 6 * second, true},
	} {
		e.now += step.after
		got := step.do()
		lasts, remembered := e.pauseAfter(0)
		if got.Lasts != step.lasts || lasts != step.lasts || remembered != step.remember || got.Longer != step.longer {
			t.Errorf("%s: %+v, seen %d and %d; want %d, %d, %v", step.what, got, lasts, remembered, step.lasts, step.remember, step.longer)
		}
	}
	e.run(t, startServer(t), timed, nil)
}

// Refusals are forgotten when a call was answered after the pause, and not before.
func TestPauseIsOver(t *testing.T) {
	e := newEngines(early)
	wantSeen := func(what string, lasts, remembered int64) {
		t.Helper()
		if gotLasts, got := e.pauseAfter(0); gotLasts != lasts || got != remembered {
			t.Errorf("%s: it lasts for %d, and is remembered for %d; want %d, %d", what, gotLasts, got, lasts, remembered)
		}
	}
	e.pauseOver("pause")
	e.pause("pause", algorithm.Pause{Span: second, Refused: true, Longest: hour})
	e.now += second - 1
	e.pauseOver("pause")
	wantSeen("in force", 1, hour+1)
	e.now++
	wantSeen("after it", 0, hour)
	e.pauseOver("pause")
	wantSeen("answered", 0, 0)
	e.pause("pause", algorithm.Pause{Span: second, Longest: hour})
	wantSeen("without a refusal", second, second)
	e.run(t, startServer(t), timed, nil)
}

// Both engines agree on any sequence of pauses, bans by hand, looks and resets, also if the clock is set.
func TestPausesOnBothEngines(t *testing.T) {
	s := startServer(t)
	rapid.Check(t, func(t *rapid.T) {
		e := newEngines(early)
		for range 30 {
			e.now += rapid.SampledFrom([]int64{0, 1, second - 1, second, 7 * second, -second, -1}).Draw(t, "time passes")
			span := rapid.SampledFrom([]int64{0, 1, second, 5 * second}).Draw(t, "span")
			switch rapid.IntRange(0, 5).Draw(t, "act") {
			case 0:
				e.pauseOver("pause")
			case 1:
				e.ban("pause", span+1)
			case 2:
				e.pauseAfter(0)
			default:
				e.pause("pause", algorithm.Pause{Span: span, Refused: rapid.Bool().Draw(t, "refused"), Base: second, Longest: 4 * second})
			}
		}
		e.run(t, s, timed, nil)
	})
}

// Equal calls that go out are decided together: none passes during a pause, and as many as fit before and
// after it, also if the clock is set.
func TestCallsTogetherDuringPauses(t *testing.T) {
	s, tokens := startServer(t), bucket(t, 5, second, 5)
	rapid.Check(t, func(t *rapid.T) {
		e := newEngines(early)
		calls := []algorithm.Counter{{Key: []byte("tokens"), Limit: &tokens, Cost: 1}, {Key: []byte("pause"), Limit: &pauses}}
		for range 20 {
			e.now += rapid.SampledFrom([]int64{0, 1, second / 5, second, 4 * second, -second}).Draw(t, "time passes")
			if oneIn(t, 4, "pause") {
				e.pause("pause", algorithm.Pause{Span: second, Refused: rapid.Bool().Draw(t, "refused"), Base: second, Longest: 4 * second})
			}
			e.crowd(int64(rapid.IntRange(1, 12).Draw(t, "calls")), e.now, calls)
		}
		e.run(t, s, timed, nil)
	})
}

// pauses is a ban that watches no counter, although it is not by hand alone.
var pauses = algorithm.Banned(1, 0, 0, second)
