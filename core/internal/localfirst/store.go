// Package localfirst stands before the store that all processes share, and answers here what it can answer truthfully:
// refusals that still hold, and permits that were leased. While that store does not answer, it counts here what is to be counted
// then.
//
// A refusal is remembered for at most a second, and never longer than it holds for sure: from when
// the store was asked until time alone can change any number of the answer
// ([algorithm.Limit.Steady]). So it is never repeated too long. The wait that is told counts from
// when the answer came, because nobody knows when the store read its clock, only that it was before
// that: it is as much too long as the answer was on its way, and never too short. What this process
// itself does to a key (charges, refunds, resets, bans) is seen at once.
//
// A lease is permits that were charged ahead of their use. Each is used in the very sub-window that it was charged in, by the
// store's clock, or within Window/32 and the same FixedWindow: so it counts where it is used, and nothing has to count one
// sub-window more for it. What is not used then is given back.
package localfirst

import (
	"context"
	"errors"
	"hash/maphash"
	"time"

	"github.com/accesslimit/accesslimit/core/internal/algorithm"
	"github.com/accesslimit/accesslimit/core/internal/clock"
	"github.com/accesslimit/accesslimit/core/internal/memstore"
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
	// GiveBackBy sets the function that gives back, soon, what some shards charged for a call that
	// another one refused.
	GiveBackBy(giveBack func([]algorithm.Charge))
	Close()
}

// Store answers, and asks the store behind it. It is safe for concurrent use.
type Store struct {
	Shared
	clock    clock.Clock
	seed     maphash.Seed
	changes  changes
	refusals refusals
	leases   leases
	local    local
}

// New puts a store before another, whose calls end by the timeout. While that fails it counts at most so many keys itself.
func New(behind Shared, timeout time.Duration, maxKeys int) *Store {
	s := &Store{Shared: behind, local: local{maxKeys: maxKeys}, seed: maphash.MakeSeed()}
	s.clock.Start()
	s.refusals.table = newTable[refusal](refusalSets)
	s.leases.init(s, timeout)
	behind.GiveBackBy(s.leases.giver.giveSoon)
	return s
}

// now is the time by this process's clock, in nanoseconds. It never steps back. When the wall clock jumps, because the machine was suspended
// or it was set, all that was remembered or leased before is over: nobody knows how much time has passed for the store behind.
func (s *Store) now() int64 { return s.clock.Awake() + s.clock.Jumps()*longestKept*1000 }

// longestKept is for how long anything that the store behind said is kept here, in microseconds.
const longestKept = max(longestRefusal, longestLease)

// surely is until when something holds that the store said would hold for so many microseconds, of an answer that was sent for at this
// time. The store's clock counts whole microseconds: when it was read it may have been almost one more.
func surely(sent, micros int64) int64 { return sent + micros*1000 - 999 }

// Decide answers for one call's counters; verdicts is as long as counters. What the store behind cannot answer for is counted here, where
// that is wanted.
func (s *Store) Decide(ctx context.Context, counters []algorithm.Counter, charge bool, verdicts []algorithm.Verdict) {
	if charge {
		s.decide(ctx, counters, verdicts)
	} else {
		s.Shared.Decide(ctx, counters, false, verdicts)
	}
	s.standIn(ctx, counters, charge, verdicts)
}

// Look is Decide without a charge, for calls. Unlike Peek, it may repeat the answer to a call that
// was refused just before.
func (s *Store) Look(ctx context.Context, counters []algorithm.Counter, verdicts []algorithm.Verdict) {
	s.look(ctx, counters, verdicts)
	s.standIn(ctx, counters, false, verdicts)
}

func (s *Store) standIn(ctx context.Context, counters []algorithm.Counter, charge bool, verdicts []algorithm.Verdict) {
	some := false
	for i := range verdicts {
		some = some || wanted(&counters[i], &verdicts[i])
	}
	if !some {
		return
	}
	if charged := s.local.standIn(ctx, counters, charge, verdicts); len(charged) > 0 {
		s.leases.giver.giveSoon(charged) // as over several shards
	}
}

func (s *Store) decide(ctx context.Context, counters []algorithm.Counter, verdicts []algorithm.Verdict) {
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

func (s *Store) look(ctx context.Context, counters []algorithm.Counter, verdicts []algorithm.Verdict) {
	id, lasting := s.refusals.identify(s, counters)
	of := id.ofLook(counters)
	if lasting && (s.refusals.recall(s, id, counters, verdicts) || s.refusals.recall(s, of, counters, verdicts)) {
		return
	}
	sent := s.now()
	s.Shared.Decide(ctx, counters, false, verdicts)
	if !lasting || !refused(counters, verdicts) {
		return
	}
	s.refusals.remember(s, of, counters, verdicts, sent, longestRefusal)
	if of == id {
		s.learnForAll(id, counters, verdicts, sent)
	}
}

// Recall repeats the answer to a call that was refused just before, and reports whether there is
// one that still holds. It does not ask the store.
func (s *Store) Recall(counters []algorithm.Counter, verdicts []algorithm.Verdict) bool {
	id, lasting := s.refusals.identify(s, counters)
	return lasting && s.refusals.recall(s, id, counters, verdicts)
}

// learn makes of a fresh answer what can be known here: a refusal that lasts, or that keys have changed.
func (s *Store) learn(id identity, lasting bool, counters []algorithm.Counter, verdicts []algorithm.Verdict, sent int64) {
	for i := range counters {
		if counters[i].Limit.Kind == algorithm.Ban && verdicts[i].Position != 0 { // struck: other calls with this ban must not repeat older refusals
			s.changed(counters[i].Key)
			if lasting {
				id.changes[i]++
			}
		}
	}
	switch {
	case !refused(counters, verdicts):
		for i := range counters {
			s.changed(counters[i].Key)
		}
	case lasting:
		s.refusals.remember(s, id, counters, verdicts, sent, longestRefusal)
		s.learnForAll(id, counters, verdicts, sent)
	}
}

// learnForAll remembers a refusal for calls by other callers, if one of the counters that do not
// depend on who calls refused. It does not if another counter refused as well, because its refusal
// would be left out. Bans among the other counters have to be asked in each of their windows.
func (s *Store) learnForAll(id identity, counters []algorithm.Counter, verdicts []algorithm.Verdict, sent int64) {
	var places []int
	span, all := int64(longestRefusal), true
	for i := range counters {
		c, v := &counters[i], &verdicts[i]
		switch {
		case !c.Personal:
			places = append(places, i)
		case v.RetryAfter > 0:
			all = false
		case c.Limit.Kind == algorithm.Ban:
			span = min(span, c.Limit.Steady(v, c.Cost))
		}
	}
	if len(places) == 0 || len(places) == len(counters) {
		return
	}
	shared, answers := make([]algorithm.Counter, len(places)), make([]algorithm.Verdict, len(places))
	for n, i := range places {
		shared[n], answers[n] = counters[i], verdicts[i]
		shared[n].Watched = counters[i].WatchedIn(places)
	}
	of, _ := s.refusals.identify(s, shared)
	for n, i := range places {
		of.changes[n] = id.changes[i]
	}
	if all {
		s.refusals.remember(s, of, shared, answers, sent, span)
	} else {
		s.refusals.forget(of, shared)
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

// GiveBack gives charges back where they were made.
func (s *Store) GiveBack(ctx context.Context, charges []algorithm.Charge) error {
	defer s.gaveBack(charges)
	return s.whereMade(ctx, charges, s.Shared.GiveBack, (*memstore.Store).GiveBack)
}

// Renew keeps the slots of a call in flight for another window each.
func (s *Store) Renew(ctx context.Context, slots []algorithm.Charge) error {
	return s.whereMade(ctx, slots, s.Shared.Renew, (*memstore.Store).Renew)
}

// whereMade does something about charges, be they the store's behind or this process's own.
func (s *Store) whereMade(ctx context.Context, charges []algorithm.Charge, behind func(context.Context, []algorithm.Charge) error,
	here func(*memstore.Store, context.Context, []algorithm.Charge) error) error {
	if !anyHere(charges) {
		return behind(ctx, charges)
	}
	own, others := s.local.split(charges)
	err := here(s.local.store(), ctx, own)
	if len(others) == 0 {
		return err
	}
	return errors.Join(err, behind(ctx, others))
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

// Reset forgets a key, what is leased of it, and what was counted here while the store behind did not answer.
func (s *Store) Reset(ctx context.Context, key []byte) error {
	defer s.changed(key)
	s.local.reset(ctx, key)
	return s.leases.reset(ctx, key, func() error { return s.Shared.Reset(ctx, key) })
}

// Close gives back what is leased, and closes the store behind. Decisions go on, without leases.
func (s *Store) Close() {
	s.leases.close()
	s.Shared.Close()
	s.local.close()
}

// Len is how many counters this process counts by itself now.
func (s *Store) Len() int {
	if counts := s.local.counts.Load(); counts != nil {
		return counts.Len()
	}
	return 0
}

// Evictions counts those that were forgotten though they still counted, because there were too many.
func (s *Store) Evictions() uint64 {
	if counts := s.local.counts.Load(); counts != nil {
		return counts.Evictions()
	}
	return 0
}
