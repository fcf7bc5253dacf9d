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
	"time"

	"github.com/accesslimit/accesslimit/core/internal/algorithm"
	"github.com/accesslimit/accesslimit/core/internal/clock"
	"github.com/accesslimit/accesslimit/core/internal/denycache"
	"github.com/accesslimit/accesslimit/core/internal/fallback"
	"github.com/accesslimit/accesslimit/core/internal/lease"
	"github.com/accesslimit/accesslimit/core/internal/pauses"
)

// Shared is the store that all processes share. The Stores of packages engine, inflight and limiter
// describe the methods that have no comment here.
type Shared interface {
	Decide(ctx context.Context, counters []algorithm.Counter, charge bool, verdicts []algorithm.Verdict)
	// Lease charges as many calls of a counter's cost as fit, up to calls, and returns their
	// number. The verdict is that of the last granted call, or the refusal.
	Lease(ctx context.Context, c *algorithm.Counter, calls int64) (granted int64, v algorithm.Verdict)
	DecideUpTo(ctx context.Context, counters []algorithm.Counter, verdicts []algorithm.Verdict)
	Reserve(ctx context.Context, c *algorithm.Counter, patience int64) algorithm.Verdict
	Charge(ctx context.Context, counters []algorithm.Counter, share float64, record []byte, verdicts []algorithm.Verdict)
	Open(ctx context.Context, counters []algorithm.Counter, b algorithm.OpenBill, verdicts []algorithm.Verdict)
	Settle(ctx context.Context, b *algorithm.Bill, change algorithm.BillChange) (algorithm.BillAnswer, error)
	GiveBack(ctx context.Context, charges []algorithm.Charge) error
	GiveBackTurn(ctx context.Context, turn algorithm.Charge) (stays int64, err error)
	RefundsLost() uint64
	Renew(ctx context.Context, slots []algorithm.Charge) error
	Records(ctx context.Context, key []byte, limit *algorithm.Limit) ([]algorithm.Record, error)
	Pause(ctx context.Context, key []byte, p *algorithm.Pause) (algorithm.Paused, error)
	PauseOver(ctx context.Context, key []byte) error
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

// Decide answers for one call's counters, charging all of them or none; verdicts is as long as
// counters.
func (s *Store) Decide(ctx context.Context, counters []algorithm.Counter, charge bool, verdicts []algorithm.Verdict) {
	if charge {
		s.decide(ctx, counters, verdicts)
		if s.dropUnconfirmed != nil && anyMissing(verdicts) {
			s.dropUnconfirmed(counters, verdicts)
		}
	} else {
		s.Shared.Decide(ctx, counters, false, verdicts)
	}
	s.StandIn(ctx, counters, charge, verdicts)
}

// decide is Decide with a charge, without the fallback.
func (s *Store) decide(ctx context.Context, counters []algorithm.Counter, verdicts []algorithm.Verdict) {
	leasable := len(counters) == 1 && lease.Leasable(&counters[0])
	if leasable && s.leases.Take(&counters[0], &verdicts[0]) {
		return
	}
	var q denycache.Query
	s.denied.Snapshot(&q, counters)
	if s.denied.Repeat(&q, counters, verdicts) {
		return
	}
	if leasable && s.leases.Fetch(ctx, &counters[0], &verdicts[0]) {
		return
	}
	sent := s.clock.Now()
	s.Shared.Decide(ctx, counters, true, verdicts)
	s.denied.Observe(&q, counters, verdicts, sent)
}

// DecideUpTo charges as much of the counters' cost as fits into all of them. The cost is the same
// for all. It sets their Cost to the cost that it decided: as much as fits, or 1 if nothing fits.
func (s *Store) DecideUpTo(ctx context.Context, counters []algorithm.Counter, verdicts []algorithm.Verdict) {
	most := counters[0].Cost
	var q denycache.Query
	algorithm.SetCost(counters, 1) // a refusal of one permit refuses any cost
	s.denied.Snapshot(&q, counters)
	if s.denied.Repeat(&q, counters, verdicts) {
		return
	}
	algorithm.SetCost(counters, most)
	sent := s.clock.Now()
	s.Shared.DecideUpTo(ctx, counters, verdicts)
	s.denied.Observe(&q, counters, verdicts, sent)
	if verdicts[0].Err == nil { // they are all on one shard
		return
	}
	if fallback.AnyCountsHere(counters, verdicts) {
		s.fallback.StandInUpTo(ctx, counters, verdicts)
	}
}

// Look is like Decide without a charge, but may repeat a remembered refusal.
func (s *Store) Look(ctx context.Context, counters []algorithm.Counter, verdicts []algorithm.Verdict) {
	var q denycache.Query
	s.denied.Snapshot(&q, counters)
	if !s.denied.RepeatLook(&q, counters, verdicts) {
		sent := s.clock.Now()
		s.Shared.Decide(ctx, counters, false, verdicts)
		s.denied.ObserveLook(&q, counters, verdicts, sent)
	}
	s.StandIn(ctx, counters, false, verdicts)
}

// Recall repeats a remembered refusal, and reports whether there is one that still holds. It does
// not ask the shared store.
func (s *Store) Recall(counters []algorithm.Counter, verdicts []algorithm.Verdict) bool {
	var q denycache.Query
	s.denied.Snapshot(&q, counters)
	return s.denied.Repeat(&q, counters, verdicts)
}

// StandIn answers for the counters that the shared store did not answer for: by a pause that is known
// here, or else by counting here. If the call is then refused, the charges on other
// servers are given back.
func (s *Store) StandIn(ctx context.Context, counters []algorithm.Counter, charge bool, verdicts []algorithm.Verdict) {
	if !anyFailed(verdicts) {
		return
	}
	s.Pauses.StandIn(counters, verdicts)
	var charged []algorithm.Charge
	if !algorithm.Passes(counters, verdicts) {
		charged = fallback.Uncharge(counters, verdicts)
	}
	if fallback.AnyCountsHere(counters, verdicts) {
		charged = append(charged, s.fallback.StandIn(ctx, counters, charge, verdicts)...)
	}
	if len(charged) > 0 {
		s.leases.GiveBackSoon(charged)
	}
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

// Lease takes permits from the shared store, for the leases.
func (s *Store) Lease(ctx context.Context, c *algorithm.Counter, calls int64) (granted int64, v algorithm.Verdict) {
	counters, sent := []algorithm.Counter{*c}, s.clock.Now()
	var q denycache.Query
	s.denied.Snapshot(&q, counters)
	granted, v = s.Shared.Lease(ctx, c, calls)
	s.denied.Observe(&q, counters, []algorithm.Verdict{v}, sent)
	return granted, v
}

// Reserve takes a turn at a bucket.
func (s *Store) Reserve(ctx context.Context, c *algorithm.Counter, patience int64) algorithm.Verdict {
	defer s.denied.Invalidate(c.Key)
	v := s.Shared.Reserve(ctx, c, patience)
	s.fallback.StandInReserve(ctx, c, patience, &v)
	return v
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

// Pause begins a pause of the calls that go out, or makes it longer.
func (s *Store) Pause(ctx context.Context, key []byte, p *algorithm.Pause) (algorithm.Paused, error) {
	defer s.denied.Invalidate(key)
	return s.Shared.Pause(ctx, key, p)
}

// PauseOver forgets the refusals before a pause that is over.
func (s *Store) PauseOver(ctx context.Context, key []byte) error {
	defer s.denied.Invalidate(key)
	return s.Shared.PauseOver(ctx, key)
}
