package algorithm_test

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/accesslimit/accesslimit/core/internal/algorithm"
)

// For every algorithm, raising and lowering a limit takes effect at once and keeps past use. A
// charge that is given back after the change is free again under each of the limits.
func TestLimitChanges(t *testing.T) {
	kinds := map[string]func(int64) algorithm.Limit{
		"bucket": func(most int64) algorithm.Limit { return bucket(t, most, second, most) },
		"day": func(most int64) algorithm.Limit {
			return algorithm.InCalendar(most, algorithm.NewCalendar("UTC", location(t, "UTC"), false))
		},
	}
	for _, kind := range []algorithm.Kind{algorithm.SlidingWindow, algorithm.SlidingLog, algorithm.FixedWindow, algorithm.CalendarWindow, algorithm.Concurrency} {
		kinds[kind.Tag()] = func(most int64) algorithm.Limit { return algorithm.Windowed(kind, most, second) }
	}
	for name, of := range kinds {
		t.Run(name, func(t *testing.T) {
			c := counter{limit: of(10)}
			before := of(10)
			var charges []algorithm.Charge
			for i := range 8 {
				counter := algorithm.Counter{Limit: &before, Cost: 1, Mark: fmt.Sprint("call ", i)}
				var v algorithm.Verdict
				before.Decide(&c.state, early, 1, counter.Mark, &v)
				charges = append(charges, counter.Charged(&v))
			}
			for _, step := range []struct{ most, remaining int64 }{{100, 92}, {9, 1}, {3, 0}, {8, 0}, {10, 2}, {10_000, 9_992}} {
				c.limit = of(step.most)
				if v := c.look(early, 1); v.Remaining != step.remaining {
					t.Errorf("8 used, now at most %d: %d left, want %d", step.most, v.Remaining, step.remaining)
				}
				if c.limit.Kind != algorithm.Concurrency {
					wantHonest(t, &c, early, 1, c.look(early, 1))
				}
			}
			c.limit = of(100)
			var v algorithm.Verdict
			c.limit.Decide(&c.state, early, 1, "under the other limit", &v)
			for i := range charges {
				charges[i].GiveBack(&c.state, early)
			}
			if v := c.look(early, 1); v.Remaining != 99 {
				t.Errorf("8 given back of 9: %d left of 100", v.Remaining)
			}
		})
	}
}

// However many rates use a bucket, none admits more than it would alone. That also holds for more
// rates than the bucket has parts, and after refunds.
func TestEachRateHoldsAsItDoesAlone(t *testing.T) {
	for _, rates := range [][]int64{{7, 1000}, {1, 7, 20, 100, 333, 1000, 5000}} {
		rapid.Check(t, func(t *rapid.T) {
			var shared counter
			var charges [][2]algorithm.Charge // of shared, and of the rate's own
			var of []int                      // their rates
			alone := make([]counter, len(rates))
			for i, rate := range rates {
				alone[i].limit = bucket(t, rate, second, 1+rate/2)
			}
			pause := rapid.SampledFrom([]int64{second / 2, second / 50, millisecond}).Draw(t, "pause")
			now := int64(early)
			for range several(t) * 3 {
				now += upTo(t, pause, "passes")
				if len(charges) > 0 && rapid.IntRange(0, 3).Draw(t, "refunds") == 0 {
					at := rapid.IntRange(0, len(charges)-1).Draw(t, "of")
					charges[at][0].GiveBack(&shared.state, now)
					charges[at][1].GiveBack(&alone[of[at]].state, now)
					charges, of = slices.Delete(charges, at, at+1), slices.Delete(of, at, at+1)
				}
				i := rapid.IntRange(0, len(rates)-1).Draw(t, "rate")
				shared.limit = alone[i].limit
				cost := max(1, shared.look(now, 1).Remaining-upTo(t, alone[i].limit.Max, "remains"))
				if v := shared.decide(now, cost); v.RetryAfter == 0 {
					own := alone[i].decide(now, cost)
					counter := algorithm.Counter{Limit: &alone[i].limit, Cost: cost}
					charges, of = append(charges, [2]algorithm.Charge{counter.Charged(&v), counter.Charged(&own)}), append(of, i)
				}
				for i := range alone {
					shared.limit = alone[i].limit
					if left, most := shared.look(now, 1).Remaining, alone[i].look(now, 1).Remaining; left > most {
						t.Fatalf("at %d: %d are left at %d a second, and %d would be alone", now-early, left, rates[i], most)
					}
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

// Refused calls at another rate, which counts in coarser units, do not round the state.
func TestBucketUsedAtTwoRatesRefills(t *testing.T) {
	one, other := bucket(t, 7, second, 7), bucket(t, 8, second, 7)
	asked, left := counter{limit: one}, counter{limit: one}
	asked.decide(early, 7)
	left.decide(early, 7)
	const after = early + 20*millisecond
	for now := int64(early); now < after; now++ {
		asked.limit = other
		asked.decide(now, 7)
		asked.limit = one
		asked.decide(now, 7)
	}
	if got, want := asked.look(after, 1), left.look(after, 1); got != want {
		t.Errorf("refused at two rates for 20 ms: %+v, left alone: %+v", got, want)
	}
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
