package algorithm_test

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/accesslimit/accesslimit/core/internal/algorithm"
)

// rateCall is a call at one rate of a bucket. The rates of all calls have one window.
type rateCall struct{ at, rate, burst, cost int64 }

// ledger lists the calls that a bucket admitted.
type ledger []rateCall

// use returns what the calls at a rate and at all slower ones use now, in permits times the window,
// and the largest burst of those calls.
func (l ledger) use(rate, window int64) (used, burst int64) {
	before := l[0].at
	for _, c := range l {
		if c.rate <= rate {
			used = max(0, used-(c.at-before)*rate) + c.cost*window
			before, burst = c.at, max(burst, c.burst)
		}
	}
	return used, burst
}

// check fails unless, at each of the rates, the calls at this rate and at all slower ones stay
// within the largest of their bursts and what the rate brings back.
func (l ledger) check(t failer, window int64) {
	t.Helper()
	for _, c := range l {
		if used, burst := l.use(c.rate, window); used > burst*window {
			t.Fatalf("%v\nthe calls at up to %d use %d of a burst of %d", l, c.rate, used/window, burst)
		}
	}
}

// However the calls at several rates alternate, and however many rates there are, the calls at one
// rate and at all slower ones never exceed their largest burst and the refill of the rate.
func TestRatesShareTheirBurst(t *testing.T) {
	for _, rates := range [][]int64{{1, 2}, {10, 11, 1000}, {1, 7, 20, 100}, {1, 7, 20, 100, 333, 1000, 5000}} {
		rapid.Check(t, func(t *rapid.T) {
			var bucket counter
			var admitted ledger
			pause := rapid.SampledFrom([]int64{1, second / 1000, second / 10, 3 * second}).Draw(t, "pause")
			now := int64(early)
			for range 60 {
				now += upTo(t, pause, "passes")
				rate := rapid.SampledFrom(rates).Draw(t, "rate")
				burst := rapid.SampledFrom([]int64{1, 5, 20, rate + 1}).Draw(t, "burst")
				limit, err := algorithm.Bucketed(rate, second, burst)
				if err != nil {
					t.Fatal(err)
				}
				bucket.limit = limit
				left := bucket.look(now, 1).Remaining
				cost := max(1, left-rapid.SampledFrom([]int64{0, 0, 1, left / 2}).Draw(t, "remains"))
				if bucket.decide(now, cost).RetryAfter == 0 {
					admitted = append(admitted, rateCall{now, rate, burst, cost})
					admitted.check(t, second)
				}
			}
		})
	}
}
