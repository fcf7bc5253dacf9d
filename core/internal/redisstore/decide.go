package redisstore

import (
	"context"
	"time"

	"github.com/accesslimit/accesslimit/core/internal/algorithm"
	"github.com/accesslimit/accesslimit/core/internal/failure"
)

// request is what a call asks of one shard.
type request struct {
	op        algorithm.Op
	operation *operation      // in place of a decision; nil: none
	hash      uint64          // of the keys; requests for the same counters have the same hash
	proof     *oneServerProof // must hold, because the keys have different hash tags; nil if they do not
}

// Decide answers for one call's counters; verdicts must be as long as counters. On one shard, one
// script charges all of them or none. Several shards are asked at the same time, or first the one
// that will probably refuse. If one of them refuses, or fails and is Required, the charges of the
// others are given back in the background. Different hash tags count as different shards unless it
// is proved that one server holds all keys.
//
// If the caller's own context ends, the verdicts report that in Ended, never as a failure of Redis.
func (s *Store) Decide(ctx context.Context, counters []algorithm.Counter, charge bool, verdicts []algorithm.Verdict) {
	if sameHashTag(counters) {
		s.decideOnShard(ctx, ctx, s.newRequest(newOp(counters, charge, 1)), verdicts)
	} else if proof := s.router.proof(); proof == nil {
		s.decideOnShards(ctx, ctx, counters, charge, verdicts)
	} else {
		r := s.newRequest(newOp(counters, charge, 1))
		r.proof = proof
		s.decideProved(ctx, r, verdicts)
	}
}

// decideProved decides counters with different hash tags in one script. If the proof does not hold,
// the call waits for a new one, but for at most a quarter of its time, because it can still ask the
// shards separately. It may have to wait again, because the connection that it gets may be new.
func (s *Store) decideProved(ctx context.Context, r request, verdicts []algorithm.Verdict) {
	start := time.Now()
	if r.proof.wanted() && s.decideOnShard(ctx, ctx, r, verdicts) {
		return
	}
	rest, cancel := context.WithDeadline(ctx, start.Add(s.timeout))
	defer cancel()
	soon, stopWaiting := context.WithDeadline(ctx, start.Add(s.timeout/4))
	defer stopWaiting()
	for r.proof.await(soon) {
		if s.decideOnShard(ctx, rest, r, verdicts) {
			return
		}
	}
	s.decideOnShards(ctx, rest, r.op.Counters, r.op.Mode == algorithm.AllOrNone, verdicts)
}

// Lease charges as many calls of a counter's cost as fit, up to calls, and returns their number.
// The verdict is that of the last granted call, or the refusal.
func (s *Store) Lease(ctx context.Context, c *algorithm.Counter, calls int64) (granted int64, v algorithm.Verdict) {
	counter, verdict := [...]algorithm.Counter{*c}, [1]algorithm.Verdict{}
	granted, err := s.callShard(ctx, s.newRequest(newOp(counter[:], true, calls)), verdict[:])
	if err != nil {
		return 0, s.failedVerdict(ctx, err)
	}
	return granted, verdict[0]
}

// decideOnShard decides counters that lie on one shard. It reports false, and decides nothing, if
// the request needs a proof that does not hold. ctx is the caller's context, or one derived from it
// that ends earlier.
func (s *Store) decideOnShard(caller, ctx context.Context, r request, verdicts []algorithm.Verdict) (decided bool) {
	_, err := s.callShard(ctx, r, verdicts)
	if err == errUnproved {
		return false
	}
	if err != nil {
		s.failVerdicts(caller, err, verdicts)
	}
	return true
}

// newOp returns the op of a number of equal calls, or of a look.
func newOp(counters []algorithm.Counter, charge bool, calls int64) algorithm.Op {
	if !charge {
		return algorithm.Op{Mode: algorithm.Looks, Counters: counters, Calls: 1}
	}
	return algorithm.Op{Mode: algorithm.AllOrNone, Counters: counters, Calls: calls}
}

func (s *Store) newRequest(op algorithm.Op) request {
	return request{op: op, hash: s.hashKeys(op.Counters)}
}

// hashKeys returns a number that is the same for the same keys in the same order.
func (s *Store) hashKeys(counters []algorithm.Counter) uint64 {
	hash := s.hashKey(counters[0].Key)
	for i := 1; i < len(counters); i++ {
		hash = hash*31 + s.hashKey(counters[i].Key)
	}
	return hash
}

// callShard asks the shard of the counters. It returns how many calls passed, if the request stands
// for several. The verdicts are those of the last call that passed, or of the first call if none
// did.
func (s *Store) callShard(ctx context.Context, r request, verdicts []algorithm.Verdict) (passed int64, err error) {
	if !s.router.isReady() { // loading a cluster's slots is part of the call's time
		deadline, cancel := context.WithTimeout(ctx, s.timeout)
		defer cancel()
		ctx = deadline
	}
	shard, err := s.router.shard(ctx, r.op.Counters[0].Key)
	if err != nil {
		return 0, err
	}
	if shard.beginDirect(r.hash) {
		defer shard.endDirect(r.hash)
		began := time.Since(shard.start)
		passed, err = s.callDirectly(ctx, shard, r, nil, verdicts)
		s.observe(r.hash, time.Since(shard.start)-began, err)
		return passed, err
	}
	return s.callThroughLane(ctx, shard, r, verdicts)
}

// callThroughLane sends the request with others, in a pipeline of its lane.
func (s *Store) callThroughLane(ctx context.Context, shard *shard, r request, verdicts []algorithm.Verdict) (passed int64, err error) {
	c := shard.enqueue(ctx, r)
	if err := c.await(); err != nil {
		s.observe(r.hash, time.Since(shard.start)-c.queuedAt, err)
		return 0, err
	}
	defer shard.recycle(c)
	switch {
	case c.err == nil:
		return c.reply.readVerdicts(&r, c.ahead, verdicts, &c.scratch)
	case shard.mustFollowSlot(c.err):
		// A pipeline neither waits for nor follows a moved slot, because other calls are in it and
		// behind it.
		rest, cancel := context.WithDeadline(ctx, shard.start.Add(c.queuedAt+s.timeout))
		defer cancel()
		passed, err = s.callDirectly(rest, shard, r, c.err, verdicts)
		s.observe(r.hash, time.Since(shard.start)-c.queuedAt, err)
		return passed, err
	case c.err == errNoConnection:
		return 0, shard.pipelines.noConnection()
	default:
		return 0, shard.server.explainTooOld(c.err)
	}
}

// callDirectly sends the request by itself, in the caller's goroutine. The refusal is the error
// reply to a pipeline that carried the request before, or nil.
func (s *Store) callDirectly(ctx context.Context, shard *shard, r request, refusal error, verdicts []algorithm.Verdict) (passed int64, err error) {
	deadline, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	c := newDecision(r)
	if err := shard.runScript(deadline, c, refusal); err != nil {
		return 0, err
	}
	shard.server.answered(c.wasUnknown)
	reply, err := c.reply()
	if err != nil {
		return 0, err
	}
	scratch := scratches.Get().(*scratch)
	defer scratches.Put(scratch)
	return reply.readVerdicts(&r, 0, verdicts, scratch)
}

// failVerdicts sets the verdicts to the error for which the store did not answer.
func (s *Store) failVerdicts(caller context.Context, err error, verdicts []algorithm.Verdict) {
	failed := s.failedVerdict(caller, err)
	for i := range verdicts {
		verdicts[i] = failed
	}
}

func (s *Store) failedVerdict(caller context.Context, err error) algorithm.Verdict {
	if ended := failure.CallersEnd(caller); ended != nil {
		return algorithm.Verdict{Ended: ended}
	}
	return algorithm.Verdict{Err: toFailure(err, s.timeout)}
}
