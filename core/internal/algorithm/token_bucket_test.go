package algorithm_test

import (
	"slices"
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

// admitted is a call that was admitted.
type admitted struct{ at, cost int64 }

// However the calls at several rates alternate, and however many rates there are, together they never
// exceed the largest burst and what the fastest rate brings back, in any span of time.
func TestRatesShareTheirBurst(t *testing.T) {
	for _, rates := range [][]int64{{1, 2}, {10, 11, 1000}, {1, 7, 20, 100}, {1, 7, 20, 100, 333, 1000, 5000}} {
		rapid.Check(t, func(t *rapid.T) {
			var bucket counter
			var calls []admitted
			pause := rapid.SampledFrom([]int64{1, second / 1000, second / 10, 3 * second}).Draw(t, "pause")
			now, largest, fastest := int64(early), int64(0), slices.Max(rates)
			for range 60 {
				now += upTo(t, pause, "passes")
				rate := rapid.SampledFrom(rates).Draw(t, "rate")
				burst := rapid.SampledFrom([]int64{1, 5, 20, rate + 1}).Draw(t, "burst")
				limit, err := algorithm.Bucketed(rate, second, burst)
				if err != nil {
					t.Fatal(err)
				}
				bucket.limit, largest = limit, max(largest, burst)
				left := bucket.look(now, 1).Remaining
				cost := max(1, left-rapid.SampledFrom([]int64{0, 0, 1, left / 2}).Draw(t, "remains"))
				if bucket.decide(now, cost).RetryAfter > 0 {
					continue
				}
				calls = append(calls, admitted{now, cost})
				sum := int64(0)
				for i := len(calls) - 1; i >= 0; i-- {
					if sum += calls[i].cost; sum*second > largest*second+(now-calls[i].at)*fastest {
						t.Fatalf("%v\n%d since %d", calls, sum, calls[i].at)
					}
				}
			}
		})
	}
}

// Both engines decide calls at any rates alike, also those whose permits have different units.
func TestBucketOfManyRates(t *testing.T) {
	s := startServer(t)
	var limits []*algorithm.Limit
	for _, rate := range []int64{1, 7, 20, 100, 333, 1000, 5000, 2_000_003} {
		limits = append(limits, new(bucket(t, rate, second, 1+rate/2)))
	}
	rapid.Check(t, func(t *rapid.T) {
		e := newEngines(early)
		var charges []algorithm.Charge
		for range several(t) / 2 {
			e.now += upTo(t, second/50, "passes") - upTo(t, 1, "the clock steps back")*upTo(t, second/50, "by")
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

// A debt that is too large to be counted is refused, with the time after which it is not.
func TestReservationsEndWhereNothingCanBeCounted(t *testing.T) {
	for _, of := range oddBuckets {
		limit := bucket(t, of[0], of[1], of[2])
		e, counter := newEngines(early), algorithm.Counter{Key: []byte("bucket"), Limit: &limit, Cost: limit.Reserved}
		reserve := func() algorithm.Verdict {
			op := algorithm.NewOp(algorithm.InTurn, counter)
			op.Patience = 1 << 60
			return e.ask(op)[0]
		}
		var v algorithm.Verdict
		for tries := 0; v.RetryAfter == 0 && tries < 100_000; tries++ {
			v = reserve()
		}
		if v.RetryAfter == 0 {
			continue // so large that it takes too long to fill
		}
		e.now += v.RetryAfter - 1
		if v := reserve(); v.RetryAfter != 1 {
			t.Errorf("%v: 1 µs before it can be counted: %+v", of, v)
		}
		e.now++
		if v := reserve(); v.RetryAfter != 0 {
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

// A reservation of no permits is never refused, also if more is in use than the limit can count.
func TestReservationOfNothingBehindALargerLimit(t *testing.T) {
	s, e := startServer(t), newEngines(early)
	large, small := bucket(t, 4, second, 1<<33), bucket(t, 1, second, 1)
	e.decide(true, e.now, []algorithm.Counter{{Key: []byte("bucket"), Limit: &large, Cost: 1 << 33}})
	if v := e.reserve(algorithm.Counter{Key: []byte("bucket"), Limit: &small}, second); v.RetryAfter != 0 {
		t.Errorf("%+v", v)
	}
	e.run(t, s, timed, nil)
}
