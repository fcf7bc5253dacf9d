package algorithm_test

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/accesslimit/accesslimit/core/internal/algorithm"
)

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

// A wait fits into a time.Duration, which holds at most 292 years, for any sequence of limits.
func TestLoweredBucketWaitFitsADuration(t *testing.T) {
	const longest = 292 * 365 * day
	s := startServer(t)
	for _, tc := range []struct {
		name            string
		before, lowered algorithm.Limit
	}{
		{"another unit", bucket(t, 1_000_000, day, 1_000_000), bucket(t, 1, day, 1)},
		{"the same unit", bucket(t, 100_003, 7*hour, 50_000_000), bucket(t, 1, 7*hour, 1)},
	} {
		e := newEngines(early)
		counters := []algorithm.Counter{{Key: []byte("bucket"), Limit: &tc.before, Cost: tc.before.Max}}
		e.decide(true, early, counters)
		counters[0].Limit, counters[0].Cost = &tc.lowered, 1
		if v := e.decide(false, early, counters)[0]; v.RetryAfter <= 0 || v.RetryAfter > longest || v.ResetAfter > longest {
			t.Errorf("%s: %+v, no wait may be over %d", tc.name, v, int64(longest))
		}
		e.run(t, s, timed, nil)
	}
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
