package localfirst

import (
	"context"

	"github.com/accesslimit/accesslimit/core/internal/algorithm"
	"github.com/accesslimit/accesslimit/core/internal/denycache"
	"github.com/accesslimit/accesslimit/core/internal/fallback"
)

// Charge charges the counters whether their costs fit or not. share bounds the debt: see
// algorithm.Limit.Debt. With a record, the shared store charges them once: see algorithm.Charge.
func (s *Store) Charge(ctx context.Context, counters []algorithm.Counter, share float64, record []byte, verdicts []algorithm.Verdict) {
	defer func() {
		for i := range counters {
			s.denied.Invalidate(counters[i].Key)
		}
	}()
	s.Shared.Charge(ctx, counters, share, record, verdicts)
	if fallback.AnyCountsHere(counters, verdicts) {
		s.fallback.StandInCharge(ctx, counters, share, verdicts)
	}
}

// Open is Decide with a charge. If the call passes, the shared store records a bill. A call that is
// counted here has none.
func (s *Store) Open(ctx context.Context, counters []algorithm.Counter, b algorithm.OpenBill, verdicts []algorithm.Verdict) {
	var q denycache.Query
	s.denied.Snapshot(&q, counters)
	if s.denied.Repeat(&q, counters, verdicts) {
		return
	}
	sent := s.clock.Now()
	s.Shared.Open(ctx, counters, b, verdicts)
	s.denied.Observe(&q, counters, verdicts, sent)
	s.StandIn(ctx, counters, true, verdicts)
}

// Settle changes a bill.
func (s *Store) Settle(ctx context.Context, b *algorithm.Bill, change algorithm.BillChange) (algorithm.BillAnswer, error) {
	defer s.invalidate(b.Charges)
	return s.Shared.Settle(ctx, b, change)
}
