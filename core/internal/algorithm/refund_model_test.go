package algorithm_test

import (
	"context"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/accesslimit/accesslimit/core/internal/algorithm"
)

// receipt is a charge of which some permits can still be given back.
type receipt struct {
	algorithm.Charge
	id, left int64
}

// refundable makes a receipt.
func refundable(c *algorithm.Counter, v *algorithm.Verdict, id int64) *receipt {
	return &receipt{c.Charged(v), id, c.Cost}
}

// drawRefund draws a receipt, and how much of it is given back now: its Cost. It removes receipts of which
// nothing is left.
func drawRefund(t *rapid.T, receipts *[]*receipt) *receipt {
	at := rapid.IntRange(0, len(*receipts)-1).Draw(t, "which")
	r := (*receipts)[at]
	r.Cost = 1 + upTo(t, r.left-1, "so much")
	r.Whole = r.Whole && r.Cost == r.left
	if r.left -= r.Cost; r.left == 0 {
		*receipts = slices.Delete(*receipts, at, at+1)
	}
	return r
}

// sharing returns limits of one window, which all use one bucket.
func sharing(t testing.TB) (all []*algorithm.Limit) {
	for _, of := range [][2]int64{{10, 10}, {7, 7}, {7, 12}, {1000, 30}, {13, 5}} {
		all = append(all, new(bucket(t, of[0], second, of[1])))
	}
	return all
}

// On both engines, a bucket of one rate answers as the queue does, to the microsecond, for any sequence
// of charges, refunds in one step or several, outcomes, turns that are taken and left, and refills.
func TestBucketRefundsAreExact(t *testing.T) {
	s, limit := startServer(t), sharing(t)[0]
	rapid.Check(t, func(t *rapid.T) {
		e, q := newEngines(early), &queue{limit: limit}
		counter := algorithm.Counter{Key: []byte("bucket"), Limit: limit}
		var receipts []*receipt
		for id := range int64(rapid.IntRange(10, 60).Draw(t, "steps")) {
			e.now += upTo(t, 2*second, "passes") / rapid.SampledFrom([]int64{1, 100, 10_000}).Draw(t, "by")
			counter.Cost = 1 + upTo(t, limit.Max-1, "cost")
			var v algorithm.Verdict
			switch do := rapid.IntRange(0, 9).Draw(t, "do"); {
			case do < 5:
				want := q.answer(e.now, counter.Cost)
				v = e.decide(true, e.now, []algorithm.Counter{counter})[0]
				if v.RetryAfter != want.RetryAfter {
					t.Fatalf("%s\nwant %+v", e.story(len(e.steps)-1), want)
				}
			case do == 5:
				v = e.reserve(counter, second)
			case len(receipts) > 0:
				r := drawRefund(t, &receipts)
				e.giveBack(r.Charge)
				if overdrawn := q.leave(e.now, mark(r.Whole, r.id)); !overdrawn {
					q.refund(e.now, r.Cost, r.id)
				}
			}
			if v.At > 0 && v.RetryAfter == 0 {
				q.charge(e.now, counter.Cost, id)
				receipts = append(receipts, refundable(&counter, &v, id))
			}
			want := q.answer(e.now, 1)
			counter.Cost = 1
			if got := e.decide(false, e.now, []algorithm.Counter{counter})[0]; got != want {
				t.Fatalf("%s\nwant %+v", e.story(len(e.steps)-1), want)
			}
		}
		e.run(t, s, timed, nil)
	})
}

// mark returns the ID of a charge that is given back whole, or one that no charge has.
func mark(whole bool, id int64) int64 {
	if whole {
		return id
	}
	return -1
}

// keptCharge is a charge less what was asked to be given back of it.
type keptCharge struct{ at, permits int64 }

// Refunds never create permits: after calls at several rates, refunds in any order and of any part, and
// turns that are left, what is in use is at least what was charged since any moment and kept, less what
// the fastest rate brings back since.
func TestRefundsNeverCreatePermits(t *testing.T) {
	s, limits := startServer(t), sharing(t)
	rapid.Check(t, func(t *rapid.T) {
		e, fastest := newEngines(early), int64(1000)
		var receipts []*receipt
		var kept []keptCharge // by the IDs of receipts
		for range rapid.IntRange(10, 60).Draw(t, "steps") {
			e.now += upTo(t, second, "passes") / rapid.SampledFrom([]int64{1, 100, 10_000}).Draw(t, "by")
			l := rapid.SampledFrom(limits).Draw(t, "limit")
			counter := algorithm.Counter{Key: []byte("bucket"), Limit: l, Cost: 1 + upTo(t, l.Max-1, "cost")}
			var v algorithm.Verdict
			switch do := rapid.IntRange(0, 9).Draw(t, "do"); {
			case do < 4:
				v = e.decide(true, e.now, []algorithm.Counter{counter})[0]
			case do == 4:
				v = e.reserve(counter, second)
			case len(receipts) > 0:
				r := drawRefund(t, &receipts)
				r.InDebt = rapid.Bool().Draw(t, "in debt")
				kept[r.id].permits -= r.Cost
				e.giveBack(r.Charge)
			}
			if v.At > 0 && v.RetryAfter == 0 {
				receipts = append(receipts, refundable(&counter, &v, int64(len(kept))))
				kept = append(kept, keptCharge{e.now, counter.Cost})
			}
			looked := e.ask(algorithm.NewOp(algorithm.Looks, algorithm.Counter{Key: counter.Key, Limit: l, ShowsDebt: true}))
			used, sum := l.Max-looked[0].Remaining, int64(0)
			for i := len(kept) - 1; i >= 0; i-- {
				sum += kept[i].permits
				if back := (e.now - kept[i].at) * fastest; used*second < sum*second-back {
					t.Fatalf("%s\n%d in use, of %d kept since %d", e.story(len(e.steps)-1), used, sum, kept[i].at-early)
				}
			}
		}
		e.run(t, s, timed, nil)
	})
}

// Given back from the oldest to the newest, all permits come back. From the newest to the oldest, the oldest
// do not: they may have come back by themselves. Those that may still have counted are reported as lost.
func TestOrderOfRefunds(t *testing.T) {
	s, limit := startServer(t), bucket(t, 1, hour, 10)
	for name, tc := range map[string]struct{ order, lost []int64 }{
		"oldest first": {[]int64{0, 1, 2, 3, 4}, []int64{0, 0, 0, 0, 0}},
		"newest first": {[]int64{4, 3, 2, 1, 0}, []int64{0, 0, 0, 2, 2}},
	} {
		e, counter := newEngines(early), algorithm.Counter{Key: []byte("bucket"), Limit: &limit, Cost: 2}
		var charges []algorithm.Charge
		for range 5 {
			charges = append(charges, counter.Charged(&e.decide(true, e.now, []algorithm.Counter{counter})[0]))
		}
		for i, at := range tc.order {
			before := e.process.RefundsLost()
			e.giveBack(charges[at])
			if lost := int64(e.process.RefundsLost() - before); lost != tc.lost[i] {
				t.Errorf("%s: refund %d lost %d, want %d", name, i, lost, tc.lost[i])
			}
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
	if err := s.SetRange(context.Background(), "bucket", 25, "\xff\xff\xff\xff\xff\xff\x0f").Err(); err != nil {
		t.Fatal(err)
	}
	now := int64(early + 1)
	renewed := s.decide(timed, one("bucket", &c.limit, now, 3))[0]
	if want := c.decide(now, 3); renewed != want || renewed.Position >= last || renewed.Remaining != 5 {
		t.Errorf("Redis says %+v, this process %+v", renewed, want)
	}
	if s.giveBack(taken, one("bucket", &c.limit, now, 2)) {
		t.Error("changed by what was charged before")
	}
	if !s.giveBack(renewed, one("bucket", &c.limit, now, 3)) {
		t.Error("not changed by what was charged since")
	}
}
