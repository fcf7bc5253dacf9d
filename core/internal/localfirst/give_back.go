package localfirst

import (
	"context"
	"errors"

	"github.com/accesslimit/accesslimit/core/internal/algorithm"
)

// GiveBack gives charges back where they were made.
func (s *Store) GiveBack(ctx context.Context, charges []algorithm.Charge) error {
	defer s.invalidate(charges)
	return s.whereMade(ctx, charges, s.Shared.GiveBack, s.fallback.GiveBack)
}

// GiveBackTurn gives a turn back where it was made.
func (s *Store) GiveBackTurn(ctx context.Context, turn algorithm.Charge) (stays int64, err error) {
	defer s.denied.Invalidate(turn.Key)
	if here, _ := s.fallback.Split([]algorithm.Charge{turn}); len(here) > 0 {
		return s.fallback.GiveBackTurn(ctx, here[0])
	}
	return s.Shared.GiveBackTurn(ctx, turn)
}

// invalidate forgets the refusals that are remembered for the counters of charges.
func (s *Store) invalidate(charges []algorithm.Charge) {
	for i := range charges {
		s.denied.Invalidate(charges[i].Key)
	}
}

// Renew keeps the slots of a call in flight for another window each.
func (s *Store) Renew(ctx context.Context, slots []algorithm.Charge) error {
	return s.whereMade(ctx, slots, s.Shared.Renew, s.fallback.Renew)
}

// whereMade passes the charges that the shared store made to one function, and those that were made
// here to the other.
func (s *Store) whereMade(ctx context.Context, charges []algorithm.Charge, shared, local func(context.Context, []algorithm.Charge) error) error {
	here, others := s.fallback.Split(charges)
	if len(here) == 0 {
		return shared(ctx, others)
	}
	err := local(ctx, here)
	if len(others) == 0 {
		return err
	}
	return errors.Join(err, shared(ctx, others))
}
