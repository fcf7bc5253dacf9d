// Package localfirst answers calls in this process if the answer is certain, and otherwise asks the
// store that all processes share.
//
// A call is answered, in this order, with a permit that was leased, with a refusal that still
// holds, or by the shared store. If that does not answer, a pause that is known here refuses the
// call, or the call is counted here. Every change that this process makes to a key invalidates the
// refusals remembered for the key. A Reset of a key also cancels the refunds to it that wait in the
// background.
package localfirst

import (
	"context"
	"errors"
	"time"

	"github.com/accesslimit/accesslimit/core/internal/algorithm"
	"github.com/accesslimit/accesslimit/core/internal/clock"
	"github.com/accesslimit/accesslimit/core/internal/denycache"
	"github.com/accesslimit/accesslimit/core/internal/fallback"
	"github.com/accesslimit/accesslimit/core/internal/lease"
	"github.com/accesslimit/accesslimit/core/internal/pauses"
)

// Shared is the store that all processes share. Package limiter describes the methods that have no comment
// here.
type Shared interface {
	Do(ctx context.Context, op *algorithm.Op)
	Change(ctx context.Context, c *algorithm.Change) error
	RefundsLost() uint64
	Records(ctx context.Context, key []byte, limit *algorithm.Limit) ([]algorithm.Record, error)
	Reset(ctx context.Context, keys ...[]byte) (changed bool, err error)
	InBackground(do func())
	// Panicked reports a panic that was caught.
	Panicked(err error)
	// GiveBackBy sets the function that gives back, in the background, the charges of some shards
	// if another shard refused the call.
	GiveBackBy(giveBack func([]algorithm.Charge))
	Close()
}

// Store answers calls in front of a shared store. It is safe for concurrent use.
type Store struct {
	Shared
	// Pauses holds the pauses that apply while the shared store does not answer.
	Pauses   *pauses.Table
	clock    clock.Expiry
	denied   *denycache.Cache
	leases   *lease.Leases
	fallback *fallback.Counters

	// dropUnconfirmed is the function of DropUnconfirmedBy, or nil.
	dropUnconfirmed func(counters []algorithm.Counter, verdicts []algorithm.Verdict)
}

// New returns a store in front of a shared one, whose calls end by the timeout. While the shared
// store does not answer, at most maxKeys keys are counted here.
func New(shared Shared, timeout time.Duration, maxKeys int) *Store {
	s := &Store{Shared: shared, fallback: fallback.New(maxKeys)}
	s.fallback.OnPanic(shared.Panicked)
	s.clock.Start()
	s.Pauses = pauses.NewTable()
	s.denied = denycache.New(&s.clock)
	s.leases = lease.New(s, &s.clock, timeout)
	shared.GiveBackBy(s.leases.GiveBackSoon)
	return s
}

// DropUnconfirmedBy sets the function that gives back the slots that the shared store may or may not
// have taken, because it did not answer for some counters of a call. Whatever stands in for it, nobody
// else knows of them. It must be called before the first decision.
func (s *Store) DropUnconfirmedBy(drop func(counters []algorithm.Counter, verdicts []algorithm.Verdict)) {
	s.dropUnconfirmed = drop
}

// Do carries out an op.
func (s *Store) Do(ctx context.Context, op *algorithm.Op) {
	s.ask(ctx, op)
	if op.Charges() && s.dropUnconfirmed != nil && anyMissing(op.Verdicts) {
		s.dropUnconfirmed(op.Counters, op.Verdicts)
	}
	s.StandIn(ctx, op)
}

// ask is Do without the fallback.
func (s *Store) ask(ctx context.Context, op *algorithm.Op) {
	leasable := len(op.Counters) == 1 && op.Mode == algorithm.AllOrNone && op.Bill == nil && lease.Leasable(&op.Counters[0])
	if leasable && s.leases.Take(&op.Counters[0], &op.Verdicts[0]) {
		return
	}
	var q denycache.Query
	if s.denied.Repeat(&q, op) {
		return
	}
	if leasable && s.leases.Fetch(ctx, &op.Counters[0], &op.Verdicts[0]) {
		return
	}
	sent := s.clock.Now()
	s.Shared.Do(ctx, op)
	s.denied.Observe(&q, op, sent)
}

// Recall repeats a remembered refusal, and reports whether there is one that still holds. It does
// not ask the shared store.
func (s *Store) Recall(op *algorithm.Op) bool { return s.denied.Repeat(new(denycache.Query), op) }

// StandIn answers for the counters that the shared store did not answer for: by a pause that is known
// here, or else by counting here. If the call is then refused, the charges on other
// servers are given back.
func (s *Store) StandIn(ctx context.Context, op *algorithm.Op) {
	if !anyFailed(op.Verdicts) {
		return
	}
	s.Pauses.StandIn(op.Counters, op.Verdicts)
	var charged []algorithm.Charge
	if !algorithm.Passes(op.Counters, op.Verdicts) {
		charged = fallback.Uncharge(op.Counters, op.Verdicts)
	}
	if fallback.AnyCountsHere(op.Counters, op.Verdicts) {
		charged = append(charged, s.fallback.StandIn(ctx, op)...)
	}
	if len(charged) > 0 {
		s.leases.GiveBackSoon(charged)
	}
}

// Change changes counters after calls, where their charges were made.
func (s *Store) Change(ctx context.Context, c *algorithm.Change) error {
	if c.Kind != algorithm.Renews { // which lets nobody pass who was refused
		defer func() {
			for i := range c.Len() {
				s.denied.Invalidate(c.KeyAt(i))
			}
		}()
	}
	here, shared := s.fallback.Split(c.Charges)
	if len(here) == 0 {
		return s.Shared.Change(ctx, c)
	}
	own, others := *c, *c
	own.Charges, others.Charges = here, shared
	err := s.fallback.Change(ctx, &own)
	if len(shared) > 0 {
		err = errors.Join(err, s.Shared.Change(ctx, &others))
	}
	c.Lost = own.Lost + others.Lost
	return err
}

// anyMissing reports whether the shared store did not answer for a counter, or not before the caller left.
func anyMissing(verdicts []algorithm.Verdict) bool {
	for i := range verdicts {
		if verdicts[i].Err != nil || verdicts[i].Ended != nil {
			return true
		}
	}
	return false
}

func anyFailed(verdicts []algorithm.Verdict) bool {
	for i := range verdicts {
		if verdicts[i].Err != nil {
			return true
		}
	}
	return false
}

// Reset forgets keys of one subject, including leased permits and what was counted here. It reports
// whether there was anything to forget.
func (s *Store) Reset(ctx context.Context, keys ...[]byte) (changed bool, err error) {
	defer func() {
		for _, key := range keys {
			s.denied.Invalidate(key)
		}
	}()
	shared := false
	local, _ := s.fallback.Reset(ctx, keys...) // it cannot fail in this process
	err = s.leases.Reset(ctx, keys, func() (err error) {
		shared, err = s.Shared.Reset(ctx, keys...)
		return err
	})
	return local || shared, err
}

// Close gives back what is leased, and closes the shared store. Decisions continue, without leases.
func (s *Store) Close() {
	s.leases.Close()
	s.Shared.Close()
	s.fallback.Close()
}

// Len returns how many keys are counted here now.
func (s *Store) Len() int { return s.fallback.Len() }

// Evictions returns how many keys were forgotten here while they still counted, because there were
// too many.
func (s *Store) Evictions() uint64 { return s.fallback.Evictions() }

// RefundsLost returns how many permits may still have counted but were not given back.
func (s *Store) RefundsLost() uint64 { return s.Shared.RefundsLost() + s.fallback.RefundsLost() }
