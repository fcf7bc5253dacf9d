package refund_test

import (
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/accesslimit/accesslimit/core/internal/algorithm"
	"github.com/accesslimit/accesslimit/core/internal/refund"
)

var hourly = algorithm.Windowed(algorithm.FixedWindow, 1_000_000, 3_600_000_000)

// charged returns the part of a refund that belongs to a charge.
func charged(ledger *refund.Ledger, id uint64, cost int64) (p refund.Part) {
	counter := algorithm.Counter{Limit: &hourly, Cost: cost}
	p.Receipt.Fill(ledger, &counter, &algorithm.Verdict{Taken: cost}, id)
	return p
}

// take gives back n permits of each part, and reports whether it could.
func take(ledger *refund.Ledger, n int64, parts ...refund.Part) bool {
	_, why := ledger.Take(parts, n)
	return why == ""
}

func want(t *testing.T, could, want bool, what string) {
	t.Helper()
	if could != want {
		t.Errorf("%s: %v, want %v", what, could, want)
	}
}

// After 65,536 other refunds, a refund is still remembered. If it is looked up in between, it is
// remembered for longer.
func TestRefundsAreRememberedForLong(t *testing.T) {
	var ledger refund.Ledger
	first, next := charged(&ledger, 1, 5), uint64(2)
	for range 2 {
		want(t, take(&ledger, 2, first), true, "two of five")
		for range 65_535 {
			want(t, take(&ledger, 1, charged(&ledger, next, 1)), true, "all of another")
			next++
		}
	}
	want(t, take(&ledger, 2, first), false, "two of the last one")
	want(t, take(&ledger, 1, first), true, "the last one")
	want(t, take(&ledger, 1, first), false, "one more")
}

// A refund of several charges, of which one was almost forgotten, remembers that one with the others,
// which take the last places.
func TestNoPartIsForgottenWhileOthersAreNoted(t *testing.T) {
	var ledger refund.Ledger
	old := charged(&ledger, 1, 2)
	want(t, take(&ledger, 1, old), true, "the first half")
	for id := range uint64(2*65_536 - 2) {
		take(&ledger, 1, charged(&ledger, 100+id, 1))
	}
	charges, _ := ledger.Take([]refund.Part{charged(&ledger, 2, 1), old}, 1)
	if len(charges) != 2 || !charges[0].Whole || charges[1].Whole {
		t.Errorf("given back are %+v", charges)
	}
	want(t, take(&ledger, 1, old), false, "more than was charged")
}

// A refund gives back something of all charges of a decision, or of none.
func TestARefundOfSeveralCharges(t *testing.T) {
	var ledger refund.Ledger
	large, small := charged(&ledger, 1, 3), charged(&ledger, 2, 1)
	want(t, take(&ledger, 2, large, small), false, "more than was charged to one")
	want(t, take(&ledger, 1, large, small), true, "what was charged to both")
	want(t, take(&ledger, 1, large, small), false, "more than is left of one")
	want(t, take(&ledger, 2, large), true, "the rest of the other")
	want(t, take(&ledger, 1), false, "a decision that charged nothing")
}

// A call that does not count gives back all that is left of its charge, even while the handler
// gives back some of it.
func TestARefundAtTheEndOfACall(t *testing.T) {
	const cost = 1 << 40
	for range 200 {
		var ledger refund.Ledger
		var handler sync.WaitGroup
		var taken atomic.Int64
		var ended atomic.Bool
		charge := charged(&ledger, 1, cost)
		for range 4 {
			handler.Go(func() {
				for !ended.Load() && take(&ledger, 1, charge) {
					taken.Add(1)
				}
			})
		}
		for taken.Load() < 100 {
			runtime.Gosched()
		}
		rest := ledger.TakeRest(algorithm.Charge{Cost: cost, Whole: true}, 1)
		ended.Store(true)
		handler.Wait()
		if sum := rest.Cost + taken.Load(); sum != cost || rest.Whole {
			t.Fatalf("%d of %d permits are given back", sum, int64(cost))
		}
	}
}

// A receipt says what the store needs to give the charge back, and there is none for a slot.
func TestReceipts(t *testing.T) {
	var ledger, other refund.Ledger
	slots := algorithm.Windowed(algorithm.Concurrency, 5, 60_000_000)
	counter := algorithm.Counter{Limit: &hourly, Mark: "phone", LocalShare: 0.5}
	charge := algorithm.Charge{Key: []byte("key"), Limit: &hourly, Cost: 2, At: 7, Position: 3, Mark: "phone"}
	for name, test := range map[string]struct {
		limit *algorithm.Limit
		from  algorithm.Origin
		local float64
		cost  int64
	}{
		"by the store":    {&hourly, algorithm.FromStore, 0, 4},
		"by this process": {&hourly, algorithm.FromLocal, 0.5, 4},
		"a slot":          {&slots, algorithm.FromStore, 0, 0},
	} {
		part := refund.Part{Key: charge.Key}
		counter.Limit = test.limit
		part.Receipt.Fill(&ledger, &counter, &algorithm.Verdict{Taken: 4, At: 7, Position: 3, From: test.from}, 1)
		if part.Receipt.Cost != test.cost || part.Receipt.Of(&ledger) != (test.cost > 0) || part.Receipt.Of(&other) {
			t.Errorf("%s: %+v", name, part.Receipt)
		}
		if test.cost == 0 {
			continue
		}
		given := new(refund.Ledger)
		charges, why := given.Take([]refund.Part{part}, 2)
		charge.LocalShare = test.local
		if why != "" || len(charges) != 1 || !same(&charges[0], &charge) {
			t.Errorf("%s: %+v, %q, want %+v", name, charges, why, charge)
		}
	}
}

func same(a, b *algorithm.Charge) bool {
	return string(a.Key) == string(b.Key) && a.Limit == b.Limit && a.Cost == b.Cost && a.At == b.At && a.Position == b.Position &&
		a.Whole == b.Whole && a.Mark == b.Mark && a.LocalShare == b.LocalShare
}
