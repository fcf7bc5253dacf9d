// Package nearstore stands before the store that all processes share, and answers here what it can answer truthfully:
// refusals that still hold, and permits that were leased.
//
// A refusal is remembered for at most a second, and never longer than it holds for sure: from when the store was asked until
// time alone can change any number of the answer ([algorithm.Limit.Steady]). Who is told to wait is told so from when the answer came. So
// it is never too long, and the wait that is told never too short. What this process itself does to a key (charges, refunds,
// resets, bans) is seen at once.
//
// A lease is permits that were charged ahead of their use. Each is used in the very sub-window that it was charged in, by the
// store's clock, or within Window/32 and the same FixedWindow: so it counts where it is used, and nothing has to count one
// sub-window more for it. What is not used then is given back.
package nearstore

import (
	"context"
	"hash/maphash"
	"time"

	"github.com/accesslimit/accesslimit/core/internal/algorithm"
)

// Shared is the store behind this one. Its methods are those of core's store, and Lease.
type Shared interface {
	Decide(ctx context.Context, counters []algorithm.Counter, charge bool, verdicts []algorithm.Verdict)
	// Lease charges up to so many calls of a counter's cost, as many as fit, and says how many. The verdict is that of the last one
	// granted, or the refusal.
	Lease(ctx context.Context, c *algorithm.Counter, calls int64) (granted int64, v algorithm.Verdict)
	Reserve(ctx context.Context, c *algorithm.Counter, patience int64) algorithm.Verdict
	GiveBack(ctx context.Context, charges []algorithm.Charge) error
	Renew(ctx context.Context, slots []algorithm.Charge) error
	Records(ctx context.Context, key []byte, limit *algorithm.Limit) ([]algorithm.Record, error)
	Ban(ctx context.Context, key []byte, span int64) error
	Reset(ctx context.Context, key []byte) error
	InBackground(do func())
	// HearGivenBack has a function called with what the store gave back by itself, when a call over several shards was refused.
	HearGivenBack(hear func([]algorithm.Charge))
	// Trips counts what went to Redis.
	Trips() (trips, calls, merged uint64)
	Close()
}

// Store answers, and asks the store behind it. It is safe for concurrent use.
type Store struct {
	Shared
	begun    time.Time
	seed     maphash.Seed
	changes  changes
	refusals refusals
	leases   leases
}

// New puts a store before another, whose calls end by the timeout.
func New(behind Shared, timeout time.Duration) *Store {
	s := &Store{Shared: behind, begun: time.Now(), seed: maphash.MakeSeed()}
	s.refusals.table = newTable[refusal](refusalSets)
	s.leases.init(s, timeout)
	behind.HearGivenBack(s.gaveBack)
	return s
}

// now is the time since the store was made, in nanoseconds, by this process's clock, which never steps.
func (s *Store) now() int64 { return int64(time.Since(s.begun)) }

// surely is until when something holds that the store said would hold for so many microseconds, of an answer that was sent for at this
// time. The store's clock counts whole microseconds: when it was read it may have been almost one more.
func surely(sent, micros int64) int64 { return sent + micros*1000 - 999 }

// Decide answers for one call's counters; verdicts is as long as counters.
func (s *Store) Decide(ctx context.Context, counters []algorithm.Counter, charge bool, verdicts []algorithm.Verdict) {
	if !charge {
		s.Shared.Decide(ctx, counters, false, verdicts)
		return
	}
	leased := len(counters) == 1 && leasable(&counters[0])
	if leased && s.leases.spend(&counters[0], &verdicts[0]) {
		return
	}
	id, lasting := s.refusals.identify(s, counters)
	if lasting && s.refusals.recall(s, id, counters, verdicts) {
		return
	}
	if leased && s.leases.decide(ctx, &counters[0], &verdicts[0]) {
		return
	}
	sent := s.now()
	s.Shared.Decide(ctx, counters, true, verdicts)
	s.learn(id, lasting, counters, verdicts, sent)
}

// learn makes of a fresh answer what can be known here: a refusal that lasts, or that keys have changed.
func (s *Store) learn(id identity, lasting bool, counters []algorithm.Counter, verdicts []algorithm.Verdict, sent int64) {
	switch {
	case !refused(counters, verdicts):
		for i := range counters {
			s.changed(counters[i].Key)
		}
	case lasting:
		s.refusals.remember(s, id, counters, verdicts, sent)
	}
}

// refused says whether the store refused, and answered for all of the counters: then nothing was charged.
func refused(counters []algorithm.Counter, verdicts []algorithm.Verdict) bool {
	for i := range verdicts {
		if verdicts[i].Err != nil || verdicts[i].Ended != nil {
			return false
		}
	}
	return !algorithm.Passes(counters, verdicts)
}

// Reserve takes a turn at a bucket.
func (s *Store) Reserve(ctx context.Context, c *algorithm.Counter, patience int64) algorithm.Verdict {
	defer s.changed(c.Key)
	return s.Shared.Reserve(ctx, c, patience)
}

// GiveBack gives charges back.
func (s *Store) GiveBack(ctx context.Context, charges []algorithm.Charge) error {
	defer s.gaveBack(charges)
	return s.Shared.GiveBack(ctx, charges)
}

// gaveBack forgets what was known of keys of which something was given back.
func (s *Store) gaveBack(charges []algorithm.Charge) {
	for i := range charges {
		s.changed(charges[i].Key)
	}
}

// Ban bans a subject by hand.
func (s *Store) Ban(ctx context.Context, key []byte, span int64) error {
	defer s.changed(key)
	return s.Shared.Ban(ctx, key, span)
}

// Reset forgets a key, and what is leased of it.
func (s *Store) Reset(ctx context.Context, key []byte) error {
	defer s.changed(key)
	return s.leases.reset(ctx, key, func() error { return s.Shared.Reset(ctx, key) })
}

// Close gives back what is leased, and closes the store behind. Decisions go on, without leases.
func (s *Store) Close() {
	s.leases.close()
	s.Shared.Close()
}
