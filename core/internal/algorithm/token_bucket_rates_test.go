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

// Whatever the order of the rates, calls that are made at once get one burst.
func TestRatesAdmitOneBurstAtOnce(t *testing.T) {
	s := startServer(t)
	for _, tc := range []struct {
		name  string
		rates []int64
		burst int64
		calls []int64 // how many calls are tried at each of the rates, in turn
	}{
		{"two rates", []int64{1, 2, 1}, 5, []int64{1, 5, 5}},
		{"an override and back", []int64{10, 11, 10}, 5, []int64{1, 5, 5}},
		{"four rates", []int64{1, 2, 3, 4, 3, 2, 1}, 100, []int64{1, 1, 1, 100, 100, 100, 100}},
		{"processes with both", []int64{10, 11, 10, 11}, 100, []int64{15, 85, 85, 85}},
	} {
		e, passed := newEngines(early), int64(0)
		for i, rate := range tc.rates {
			limit := bucket(t, rate, hour, tc.burst)
			for range tc.calls[i] {
				if e.decide(true, e.now, []algorithm.Counter{{Key: []byte("bucket"), Limit: &limit, Cost: 1}})[0].RetryAfter == 0 {
					passed++
				}
			}
		}
		if passed != tc.burst {
			t.Errorf("%s: %d calls passed at once, want the burst of %d", tc.name, passed, tc.burst)
		}
		e.run(t, s, timed, nil)
	}
}

// A charge at a new rate that is given back leaves nothing behind: the bucket answers as if that
// rate had not been used.
func TestGivingBackTheOnlyCallAtARate(t *testing.T) {
	s, e := startServer(t), newEngines(early)
	fast, slow := bucket(t, 100, hour, 10), bucket(t, 1, hour, 10)
	call := func(l *algorithm.Limit) algorithm.Charge {
		c := algorithm.Counter{Key: []byte("bucket"), Limit: l, Cost: 1}
		return c.Charged(&e.decide(true, e.now, []algorithm.Counter{c})[0])
	}
	for range 2 {
		call(&fast)
	}
	refused := []algorithm.Charge{call(&slow), call(&slow)}
	e.giveBack(refused[0])
	e.giveBack(refused[1])
	for range 2 {
		call(&fast)
	}
	e.now += hour / 100
	if v := e.decide(false, e.now, []algorithm.Counter{{Key: []byte("bucket"), Limit: &slow, Cost: 1}})[0]; v.Remaining != 6 {
		t.Errorf("4 used of 10, and none came back at one an hour: %d left", v.Remaining)
	}
	e.run(t, s, timed, nil)
}

// Each pair of a slow and a fast call is a gap in the part of the slow rate. Slow calls from before
// many of them are given back.
func TestRefundsBehindManyPairs(t *testing.T) {
	s, e := startServer(t), newEngines(early)
	slow, fast := bucket(t, 1, hour, 1000), bucket(t, 2, hour, 2000)
	call := func(l *algorithm.Limit) algorithm.Charge {
		c := algorithm.Counter{Key: []byte("bucket"), Limit: l, Cost: 1}
		return c.Charged(&e.decide(true, e.now, []algorithm.Counter{c})[0])
	}
	var open []algorithm.Charge
	for range 20 {
		open = append(open, call(&slow))
	}
	for range 70 {
		call(&fast)
		call(&slow)
	}
	for _, c := range open {
		e.giveBack(c)
	}
	left := func(l *algorithm.Limit) int64 {
		return e.decide(false, e.now, []algorithm.Counter{{Key: []byte("bucket"), Limit: l, Cost: 1}})[0].Remaining
	}
	if slow, fast := left(&slow), left(&fast); slow != 930 || fast != 1860 {
		t.Errorf("70 pairs still count: %d and %d left, want 930 of 1000 and 1860 of 2000", slow, fast)
	}
	e.run(t, s, timed, nil)
}

// The part of a rate that is new to a bucket is a copy of the fullest one. If that is a faster part,
// or a slower one that lacks calls of the others, a refund takes nothing from the copy: what slower
// calls use would be missing in it. 99 more passed, where 10 are right.
func TestARefundLeavesWhatSlowerCallsUse(t *testing.T) {
	slow, middle, fast := bucket(t, 1, 3600*second, 100), bucket(t, 2, 3600*second, 100), bucket(t, 360_000, 3600*second, 100)
	for name, slowFirst := range map[string]bool{"slow calls first": true, "fast calls first": false} {
		e := newEngines(1900026044000000)
		charge := func(l *algorithm.Limit, cost int64) algorithm.Charge {
			c := algorithm.Counter{Key: []byte("a"), Limit: l, Cost: cost}
			return c.Charged(&e.decide(true, e.now, []algorithm.Counter{c})[0])
		}
		one := algorithm.Counter{Key: []byte("a"), Limit: &middle, Cost: 1}
		var refunded algorithm.Charge
		if slowFirst {
			charge(&slow, 90)
			e.now += second
			refunded = charge(&fast, 99)
		} else {
			refunded = charge(&fast, 99)
			e.now += second
			charge(&slow, 90)
		}
		passed := 0
		for e.decide(true, e.now, []algorithm.Counter{one})[0].RetryAfter == 0 {
			passed++
		}
		e.giveBack(refunded)
		for e.decide(true, e.now, []algorithm.Counter{one})[0].RetryAfter == 0 {
			passed++
		}
		if passed > 10 {
			t.Errorf("%s: %d calls pass beside 90 of a burst of 100", name, passed)
		}
		e.run(t, startServer(t), expiring, nil)
	}
}
