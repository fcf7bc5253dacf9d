package algorithm_test

import (
	"context"
	"testing"

	"pgregory.net/rapid"

	"github.com/accesslimit/accesslimit/core/internal/algorithm"
)

// oddBuckets lists rate, window and burst of buckets in which rounding would show: rates that do
// not divide the second, a rate for which whole microseconds per permit admit far too much,
// millisecond ticks, bursts above and below the rate, and an hour that has no millisecond ticks.
var oddBuckets = [][3]int64{
	{1, second, 1},
	{7, second, 7},
	{600_000, second, 600_000},
	{999_983, second, 100},
	{3, 61 * 60 * second, 3},
	{10, second, 3},
	{10, second, 35},
	{1_000_003, millisecond, 17},
	{5, 1001, 9},
	{11, hour + 1, 5},
	{100_003, 7 * hour, 1_000_000},
	{1, algorithm.MaxWindow, 2},
	{365, algorithm.MaxWindow, 1000},
	{algorithm.MaxPermits, 1000 * second, 1},
}

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

// With more rates than a bucket has parts, both engines merge the same parts.
func TestBucketOfMoreRatesThanParts(t *testing.T) {
	s := startServer(t)
	var limits []*algorithm.Limit
	for _, rate := range []int64{1, 7, 20, 100, 333, 1000, 5000} {
		limits = append(limits, new(bucket(t, rate, second, 1+rate/2)))
	}
	rapid.Check(t, func(t *rapid.T) {
		e := newEngines(early)
		var charges []algorithm.Charge
		for range several(t) / 2 {
			e.now += upTo(t, second/50, "passes")
			if len(charges) > 0 && oneIn(t, 4, "refunds") {
				e.giveBack(rapid.SampledFrom(charges).Draw(t, "of"))
			}
			c := algorithm.Counter{Key: []byte("bucket"), Limit: rapid.SampledFrom(limits).Draw(t, "limit")}
			c.Cost = 1 + upTo(t, c.Limit.Max-1, "cost")
			if v := e.decide(true, e.now, []algorithm.Counter{c})[0]; v.RetryAfter == 0 {
				charges = append(charges, c.Charged(&v))
			}
			for _, l := range limits {
				e.decide(false, e.now, []algorithm.Counter{{Key: c.Key, Limit: l, Cost: 1}})
			}
		}
		e.run(t, s, timed, nil)
	})
}

// A wait also fits into a time.Duration after the parts of two rates were merged, one of them much
// slower.
func TestWaitAfterRatesWereMergedFitsADuration(t *testing.T) {
	e := newEngines(early)
	var v algorithm.Verdict
	for _, of := range [][3]int64{{1, 10, 1}, {2, 10, 1}, {7, 10, 1}, {900, 60_000, 50_000}, {1000, 70_000, 1}, {7, 10, 1}} {
		limit := bucket(t, of[0], 366*day, of[1])
		v = e.decide(true, early, []algorithm.Counter{{Key: []byte("bucket"), Limit: &limit, Cost: of[2]}})[0]
	}
	if v.ResetAfter < 70*365*day || v.ResetAfter > 72*365*day {
		t.Errorf("%+v, want 71 years until it is fresh", v)
	}
	e.run(t, startServer(t), timed, nil)
}

// A debt that is too large to be counted is refused, with the time after which it is not.
func TestReservationsEndWhereNothingCanBeCounted(t *testing.T) {
	for _, of := range oddBuckets {
		limit := bucket(t, of[0], of[1], of[2])
		e, counter := newEngines(early), algorithm.Counter{Key: []byte("bucket"), Limit: &limit, Cost: limit.Reserved}
		var v algorithm.Verdict
		for tries := 0; v.RetryAfter == 0 && tries < 100_000; tries++ {
			v = e.process.Reserve(context.Background(), &counter, 1<<60)
		}
		if v.RetryAfter == 0 {
			continue // so large that it takes too long to fill
		}
		e.now += v.RetryAfter - 1
		if v := e.process.Reserve(context.Background(), &counter, 1<<60); v.RetryAfter != 1 {
			t.Errorf("%v: 1 µs before it can be counted: %+v", of, v)
		}
		e.now++
		if v := e.process.Reserve(context.Background(), &counter, 1<<60); v.RetryAfter != 0 {
			t.Errorf("%v: after RetryAfter: %+v", of, v)
		}
	}
}

// A reservation of no permits writes nothing, not even that the clock stepped back.
func TestReservationOfNothingWritesNothing(t *testing.T) {
	s, limit, e := startServer(t), bucket(t, 7, second, 7), newEngines(early)
	e.decide(true, e.now, []algorithm.Counter{{Key: []byte("bucket"), Limit: &limit, Cost: 3}})
	e.run(t, s, timed, nil)
	before := s.state("bucket")
	e.now -= hour
	e.reserve(algorithm.Counter{Key: []byte("bucket"), Limit: &limit}, second)
	e.run(t, s, timed, nil)
	if s.state("bucket") != before {
		t.Error("the state was changed")
	}
}
