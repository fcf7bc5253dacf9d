package algorithm_test

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/accesslimit/accesslimit/core/internal/algorithm"
)

// A word answers as its state does, to the microsecond, as long as it is valid. Written back, it is
// that state.
func TestWordIsItsState(t *testing.T) {
	all := families(t)
	for _, name := range []string{"sliding window", "fixed window", "calendar window", "token bucket"} {
		for _, of := range all[name] {
			t.Run(of.name, func(t *testing.T) {
				words := 0
				rapid.Check(t, func(t *rapid.T) { words += wantWords(t, of) })
				if words == 0 {
					t.Error("no state was a word")
				}
			})
		}
	}
}

// wantWords compares a state with one that is a word now and then, and returns how often it was.
func wantWords(t *rapid.T, of family) (words int) {
	limit := rapid.SampledFrom(of.limits).Draw(t, "limit")
	now := early + upTo(t, hour+3*of.window, "begin")
	state, asWord := counter{limit: *limit}, counter{limit: *limit}
	last := int64(0)
	both := func(cost int64) (v algorithm.Verdict) {
		v = state.decide(now, cost)
		got := asWord.decide(now, cost)
		last = got.Position
		if got.Position = v.Position; got != v {
			t.Fatalf("at %d: %+v, and put back %+v", now, v, got)
		}
		return v
	}
	for range several(t) {
		now += later(t, of.window, both(1+upTo(t, limit.Max-1, "cost")))
		if both(1).RetryAfter > 0 {
			continue
		}
		word, value, ok := asWord.limit.AsWord(&asWord.state, now)
		if !ok {
			continue
		}
		words++
		for range rapid.IntRange(0, 6).Draw(t, "charges") {
			now += upTo(t, max(1, min(of.window, 4*second)/16), "in between")
			cost := 1 + upTo(t, limit.Max/4, "cost")
			next, fits := word.Charge(value, now, cost)
			if !fits {
				break
			}
			value = next
			v, want := word.Answer(value, now, cost), state.decide(now, cost)
			if limit.Kind == algorithm.TokenBucket { // which has positions of its own that grow
				if v.Position < last+cost {
					t.Fatalf("at %d, cost %d: position %d after %d", now, cost, v.Position, last)
				}
				last, v.Position = v.Position, want.Position
			}
			if v != want {
				t.Fatalf("at %d, cost %d: %+v, want %+v", now, cost, v, want)
			}
		}
		fresh := word.Back(value, now, &asWord.state)
		if want := now + state.look(now, 0).ResetAfter; fresh != want && fresh > now {
			t.Fatalf("at %d: fresh at %d, want %d", now, fresh, want)
		}
	}
	return words
}
