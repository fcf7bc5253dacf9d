package redisstore

import (
	"bytes"
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

// Do carries out an op. On one shard, one script decides. An op that looks or charges all or none,
// without a bill, may have keys on several shards. Those are asked at the same time, or first the one that will probably refuse. If one
// of them refuses, or fails and is Required, the charges of the others are given back in the background.
// Different hash tags count as different shards unless it is proved that one server holds all keys.
//
// If the caller's own context ends, the verdicts report that in Ended, never as a failure of Redis.
func (s *Store) Do(ctx context.Context, op *algorithm.Op) {
	switch {
	case op.Mode == algorithm.InTurn:
		s.takeTurn(ctx, op)
	case sameHashTag(op.Counters):
		r := s.newRequest(*op)
		r.op.Record, r.op.Bill = bytes.Clone(op.Record), cloneBill(op.Bill)
		passed, err := s.callShard(ctx, r, op.Verdicts)
		if op.Passed = passed; err != nil {
			s.failVerdicts(ctx, err, op.Verdicts)
		}
	default:
		s.decideAcross(ctx, op)
	}
}

// cloneBill returns a copy, because a command may outlive its caller.
func cloneBill(b *algorithm.OpenBill) *algorithm.OpenBill {
	if b == nil {
		return nil
	}
	return &algorithm.OpenBill{Key: bytes.Clone(b.Key), Span: b.Span}
}

// takeTurn takes a turn at a bucket. It sends nothing for a caller who has left. If the caller leaves
// afterwards, takeTurn still returns the answer, so that the turn can be given back.
func (s *Store) takeTurn(ctx context.Context, op *algorithm.Op) {
	deadline, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.timeout)
	defer cancel()
	call := newDecision(s.newRequest(*op))
	call.caller = ctx
	reply, err := s.runScript(deadline, op.Counters[0].Key, call)
	if err == nil {
		_, err = reply.readVerdicts(&call.request, 0, op.Verdicts, new(scratch))
	}
	if err != nil {
		s.failVerdicts(ctx, err, op.Verdicts)
	}
}

// decideAcross decides counters with different hash tags, in one script if it is proved that one server holds
// them. If it is not proved, the call waits for that, but for at most a quarter of its time, because it can still ask
// the shards separately.
func (s *Store) decideAcross(ctx context.Context, op *algorithm.Op) {
	r, start := s.newRequest(*op), time.Now()
	if r.proof = s.router.proof(); r.proof == nil {
		s.decideOnShards(ctx, ctx, op)
		return
	}
	if r.proof.wanted() && s.decideOnShard(ctx, ctx, r, op.Verdicts) {
		return
	}
	rest, cancel := context.WithDeadline(ctx, start.Add(s.timeout))
	defer cancel()
	soon, stopWaiting := context.WithDeadline(ctx, start.Add(s.timeout/4))
	defer stopWaiting()
	if r.proof.await(soon) && s.decideOnShard(ctx, rest, r, op.Verdicts) {
		return
	}
	s.decideOnShards(ctx, rest, op)
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
	failed := algorithm.Verdict{Ended: failure.CallersEnd(caller)}
	if failed.Ended == nil {
		failed.Err = toFailure(err, s.timeout)
	}
	for i := range verdicts {
		verdicts[i] = failed
	}
}
