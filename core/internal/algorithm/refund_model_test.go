package algorithm_test

import (
	"context"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/accesslimit/accesslimit/core/internal/algorithm"
)

// nobody is the holder of permits that a refund could not give back.
const nobody = -1

// receipt is a charge of which some permits can still be given back.
type receipt struct {
	algorithm.Charge
	id, left int64
	limit    *algorithm.Limit
}

// sharing returns limits of one window, which all use one bucket.
func sharing(t testing.TB) (all []*algorithm.Limit) {
	for _, of := range [][2]int64{{10, 10}, {7, 7}, {7, 12}, {1000, 30}, {13, 5}} {
		all = append(all, new(bucket(t, of[0], second, of[1])))
	}
	return all
}

// On both engines, a bucket answers as the list does, to the microsecond, for any sequence of
// charges, refunds in one step or several, outcomes, reservations, changes of the limit and
// refills.
func TestBucketRefundsAreExact(t *testing.T) {
	s, limits := startServer(t), sharing(t)
	for name, several := range map[string]int{"one rate": 1, "several": len(limits)} {
		t.Run(name, rapid.MakeCheck(func(t *rapid.T) {
			e, b := newEngines(early), &tub{}
			key := []byte("bucket")
			var receipts []*receipt
			for id := range int64(rapid.IntRange(10, 60).Draw(t, "steps")) {
				e.now += upTo(t, 2*second, "passes") / rapid.SampledFrom([]int64{1, 100, 10_000}).Draw(t, "by")
				l := limits[rapid.IntRange(0, several-1).Draw(t, "limit")]
				counter := algorithm.Counter{Key: key, Limit: l, Cost: 1 + upTo(t, l.Max-1, "cost")}
				var v algorithm.Verdict
				switch do := rapid.IntRange(0, 9).Draw(t, "do"); {
				case do < 5:
					want := b.answer(l, e.now, counter.Cost)
					v = e.decide(true, e.now, []algorithm.Counter{counter})[0]
					if v.RetryAfter != want.RetryAfter {
						t.Fatalf("%s\nwant %+v", e.story(len(e.steps)-1), want)
					}
				case do == 5:
					v = e.reserve(counter, second)
				case len(receipts) > 0:
					at := rapid.IntRange(0, len(receipts)-1).Draw(t, "which")
					r := receipts[at]
					r.Cost = 1 + upTo(t, r.left-1, "so much")
					e.giveBack(r.Charge)
					b.refund(r.limit, e.now, r.Cost, r.id)
					r.Given, r.left = r.Given+r.Cost, r.left-r.Cost
					if r.left == 0 {
						receipts = slices.Delete(receipts, at, at+1)
					}
				}
				if v.At > 0 && v.RetryAfter == 0 {
					b.charge(l, e.now, counter.Cost, id)
					receipts = append(receipts, &receipt{counter.Charged(&v), id, counter.Cost, l})
				}
				for _, l := range limits[:several] {
					want := b.answer(l, e.now, 1)
					if got := e.decide(false, e.now, []algorithm.Counter{{Key: key, Limit: l, Cost: 1}})[0]; got != want {
						t.Fatalf("%s\nwant %+v", e.story(len(e.steps)-1), want)
					}
				}
			}
			e.run(t, s, timed, nil)
		}))
	}
}

// Up to 256 gaps, all that was charged can be given back, in any order. If there are more, the oldest
// are merged. Calls at the rate of the bucket can be given back there, too, but only as many as are
// known to count. Permits that may have counted still, and were not given back, are reported.
func TestBucketOfManyGaps(t *testing.T) {
	s := startServer(t)
	for _, tc := range []struct {
		name        string
		calls, rate int64
		lost        bool
	}{
		{"256 gaps", 512, 1, false},
		{"1000 gaps", 2000, 1, false},
		{"1000 gaps, while permits come back", 2000, 3600 * 500, true},
	} {
		e, limit := newEngines(early), bucket(t, tc.rate, hour, tc.calls)
		var charges []algorithm.Charge
		call := func() {
			counter := algorithm.Counter{Key: []byte("bucket"), Limit: &limit, Cost: 1}
			charges = append(charges, counter.Charged(&e.decide(true, e.now, []algorithm.Counter{counter})[0]))
		}
		left := func() int64 {
			return e.decide(false, e.now, []algorithm.Counter{{Key: []byte("bucket"), Limit: &limit, Cost: 1}})[0].Remaining
		}
		for range tc.calls {
			call()
		}
		for i := int64(0); i < tc.calls; i += 2 { // the oldest first, of which each leaves a gap
			e.giveBack(charges[i])
			if got := left(); got != i/2+1 {
				t.Fatalf("%s: %d left after %d were given back", tc.name, got, i/2+1)
			}
		}
		if tc.rate > 1 {
			e.now += 1000 * millisecond // 500 of the 1000 come back
		}
		for i := int64(1); i < tc.calls; i += 2 {
			e.giveBack(charges[i])
		}
		lost := int64(e.process.RefundsLost())
		if got := left(); got > tc.calls || got < tc.calls-lost || lost > 0 != tc.lost {
			t.Errorf("%s: %d left of %d after all were given back, %d lost", tc.name, got, tc.calls, lost)
		}
		e.run(t, s, timed, nil)
	}
}

// When the positions are used up, they begin anew. Then an earlier charge can no longer be given
// back, and its refund gives back no other charge.
func TestBucketOfManyPositions(t *testing.T) {
	const last = 1<<52 - 1
	s, c := startServer(t), counter{limit: bucket(t, 10, second, 10)}
	taken := s.decide(timed, one("bucket", &c.limit, early, 2))[0]
	c.decide(early, 2)
	c.state.Charged, taken.Position = last, last
	if err := s.SetRange(context.Background(), "bucket", 30, "\xff\xff\xff\xff\xff\xff\x0f").Err(); err != nil {
		t.Fatal(err)
	}
	now := int64(early + 1)
	renewed := s.decide(timed, one("bucket", &c.limit, now, 3))[0]
	if want := c.decide(now, 3); renewed != want || renewed.Position >= last || renewed.Remaining != 5 {
		t.Errorf("Redis says %+v, this process %+v", renewed, want)
	}
	if n := s.giveBack(taken, one("bucket", &c.limit, now, 2)); n != 0 {
		t.Errorf("%d changed by what was charged before", n)
	}
	if n := s.giveBack(renewed, one("bucket", &c.limit, now, 3)); n != 1 {
		t.Errorf("%d changed by what was charged since", n)
	}
}
