package redisstore_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/accesslimit/accesslimit/core/internal/algorithm"
)

// bill opens a bill of a subject at an estimate, and settles it at a part of that.
func (s store) bill(t *testing.T, subject string, limit *algorithm.Limit, estimate, used int64) {
	c := counter(subject, limit)
	c.Cost = estimate
	b := algorithm.Bill{Key: fmt.Appendf(nil, "test:{%s}:bill:%d", subject, used), Share: 1}
	op := algorithm.NewOp(algorithm.AllOrNone, c)
	op.Bill = &algorithm.OpenBill{Key: b.Key, Span: 3600 * 1_000_000}
	if s.Do(context.Background(), op); !passes(op.Verdicts[0]) {
		t.Errorf("%+v", op.Verdicts[0])
		return
	}
	b.Charges = []algorithm.Charge{c.Charged(&op.Verdicts[0])}
	b.Charges[0].InDebt = true
	change := algorithm.Change{Kind: algorithm.ChangesBill, Bill: &b, To: algorithm.BillChange{Settle: true, Permits: used}}
	if err := s.Change(context.Background(), &change); err != nil || change.Billed.Status != algorithm.BillChanged {
		t.Errorf("%+v, %v", change.Billed, err)
	}
}

// To open a bill takes one round trip, and to settle it another. Those of many callers leave together
// in pipelines.
func TestBillsJoinPipelines(t *testing.T) {
	_, client := startOne(t)
	s, limit := newStore(t, client, patient), daily(t, 1000)
	s.bill(t, "warm", limit, 2, 1) // the server knows the scripts now
	before, _, _ := s.Trips()
	s.bill(t, "alone", limit, 2, 1)
	if trips, _, _ := s.Trips(); trips != before+2 {
		t.Errorf("%d round trips for one bill", trips-before)
	}
	trips, calls, _ := s.Trips()
	together(crowd, func(i int) {
		for n := range int64(10) {
			s.bill(t, fmt.Sprint("subject", i), limit, 20+n, n)
		}
	})
	tripsNow, callsNow, merged := s.Trips()
	if trips, calls = tripsNow-trips, callsNow-calls; calls != 2*10*crowd || trips >= calls/2 || merged > 0 {
		t.Errorf("%d round trips for %d calls, %d of them merged", trips, calls, merged)
	}
	t.Logf("%d calls in a round trip", calls/trips)
	for i := range crowd {
		if left := s.left(t, counter(fmt.Sprint("subject", i), limit)); left != 1000-45 {
			t.Errorf("%d left, want 955", left)
		}
	}
}
