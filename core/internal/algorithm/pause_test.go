package algorithm_test

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/accesslimit/accesslimit/core/internal/algorithm"
)

// pauseAfter returns what a call finds: how long the pause lasts, and for how long refusals are
// remembered.
func (e *engines) pauseAfter(after int64) (lasts, remembered int64) {
	e.now += after
	v := e.decide(false, e.now, []algorithm.Counter{{Key: []byte("pause"), Limit: &algorithm.PauseLimit}})[0]
	return v.RetryAfter, v.ResetAfter
}

// Both engines agree on any sequence of pauses by servers and operators, also if the clock is set.
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
				e.pause("pause", algorithm.Pause{Span: span + 1, By: algorithm.PauseBy("bob", "ticket 7")})
			case 2:
				e.pauseAfter(0)
			default:
				e.pause("pause", algorithm.Pause{Span: span, Refused: rapid.Bool().Draw(t, "refused"), Base: second, Longest: 4 * second})
			}
		}
		e.run(t, s, timed, nil)
	})
}

// Equal calls that go out are decided together: none passes during a pause, and as many as fit
// before and after it, also if the clock is set.
func TestCallsTogetherDuringPauses(t *testing.T) {
	s, tokens := startServer(t), bucket(t, 5, second, 5)
	rapid.Check(t, func(t *rapid.T) {
		e := newEngines(early)
		calls := []algorithm.Counter{{Key: []byte("tokens"), Limit: &tokens, Cost: 1}, {Key: []byte("pause"), Limit: &algorithm.PauseLimit}}
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
