package localfirst

import (
	"context"

	"github.com/accesslimit/accesslimit/core/internal/algorithm"
	"github.com/accesslimit/accesslimit/core/internal/fallback"
)

// Charge charges the counters whether their costs fit or not. share bounds the debt: see
// algorithm.Limit.Debt.
func (s *Store) Charge(ctx context.Context, counters []algorithm.Counter, share float64, verdicts []algorithm.Verdict) {
	defer func() {
		for i := range counters {
			s.denied.Invalidate(counters[i].Key)
		}
	}()
	sent := s.clock.Now()
	s.Shared.Charge(ctx, counters, share, verdicts)
	s.Bans.Observe(counters, verdicts, sent)
	if !anyFailed(verdicts) {
		return
	}
	s.Bans.StandIn(counters, verdicts)
	if fallback.AnyCountsHere(counters, verdicts) {
		s.fallback.StandInCharge(ctx, counters, share, verdicts)
	}
}
