package algorithm_test

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/accesslimit/accesslimit/core/internal/algorithm"
	"github.com/accesslimit/accesslimit/internal/scriptclock"
)

// inFlight maps each holder of a slot to the time of its last renewal.
type inFlight map[string]int64

// answer predicts the verdict on one more slot.
func (f inFlight) answer(now int64, l *algorithm.Limit) (want algorithm.Verdict) {
	var frees []int64 // when each slot becomes free if it is not renewed
	for _, renewed := range f {
		if now-renewed < l.Window {
			frees = append(frees, renewed+l.Window-now)
		}
	}
	slices.Sort(frees)
	held := int64(len(frees))
	want = algorithm.Verdict{At: now, Remaining: max(0, l.Max-held)}
	if held > 0 {
		want.ResetAfter = frees[held-1]
	}
	if held >= l.Max {
		want.RetryAfter = frees[held-l.Max]
	}
	return want
}

// Slots are taken, renewed, given back, and lost by holders that die. Every answer equals that of a
// set of holders.
func TestConcurrencyIsExact(t *testing.T) {
	for _, window := range []int64{millisecond, 30 * second, algorithm.MaxWindow} {
		t.Run(fmt.Sprint(window), rapid.MakeCheck(func(t *rapid.T) {
			limit := algorithm.Windowed(algorithm.Concurrency, rapid.Int64Range(1, 5).Draw(t, "max"), window)
			e, held, last := newEngines(early), make(inFlight), algorithm.Verdict{}
			for i := range several(t) {
				e.now = min(late, e.now+later(t, window, last))
				old := fmt.Sprint(rapid.IntRange(0, i).Draw(t, "holder"))
				slot := algorithm.Charge{Key: []byte("slots"), Limit: &limit, Cost: 1, Mark: old}
				switch rapid.IntRange(0, 5).Draw(t, "what") {
				case 4:
					e.giveBack(slot)
					delete(held, old)
				case 5:
					e.renew(slot)
					held[old] = e.now
				default:
					want := held.answer(e.now, &limit)
					last = e.decide(true, e.now, []algorithm.Counter{{Key: slot.Key, Limit: &limit, Cost: 1, Mark: fmt.Sprint("new ", i)}})[0]
					if want.RetryAfter == 0 {
						held[fmt.Sprint("new ", i)] = e.now
						want.Taken, want.Remaining, want.ResetAfter = 1, want.Remaining-1, window
					}
					if last != want {
						t.Fatalf("%s\ngot %+v, want %+v", e.story(len(e.steps)-1), last, want)
					}
				}
			}
		}))
	}
}

// A key that lost its time to live has one again when a slot is given back or renewed.
func TestSlotsWithoutTimeToLive(t *testing.T) {
	s := startServer(t)
	limit := algorithm.Windowed(algorithm.Concurrency, 5, second)
	persist := &algorithm.Script{Text: scriptclock.Lines + "return {redis.call('PERSIST', KEYS[1])}"}
	for name, write := range map[string]func(*engines, algorithm.Charge){
		"give back": func(e *engines, slot algorithm.Charge) { e.giveBack(slot) },
		"renew":     func(e *engines, slot algorithm.Charge) { e.renew(slot) },
	} {
		e := newEngines(early)
		for _, holder := range []string{"a", "b"} {
			e.decide(true, early, []algorithm.Counter{{Key: []byte("slots"), Limit: &limit, Cost: 1, Mark: holder}})
		}
		e.add(step{script: persist, keys: []string{"slots"}, want: []any{int64(1)}})
		write(e, algorithm.Charge{Key: []byte("slots"), Limit: &limit, Cost: 1, Mark: "a"})
		e.run(t, s, timed, nil)
		if got := s.expires("slots") * 1000; got < early+second || got > early+second+millisecond {
			t.Errorf("%s: the key expires at %d", name, got)
		}
	}
}
