// Package redisstore keeps counters in Redis.
//
// The counters that share a shard are decided by one script call: EVALSHA, or EVAL where the server does not know the
// script yet. A call is never sent twice otherwise, because the first may have charged; it returns by its deadline,
// whatever Redis does and however the client was configured.
package redisstore

import (
	"context"
	"hash/maphash"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/accesslimit/accesslimit/core/internal/algorithm"
	"github.com/accesslimit/accesslimit/core/internal/failure"
)

// Store decides through one client. It is safe for concurrent use.
type Store struct {
	*common
	router    router
	seed      maphash.Seed
	scratches sync.Pool // of *room

	forecasts forecastTable
	giveBack  func([]algorithm.Charge)
}

// New makes a store. It connects to nothing. Timeout bounds every call.
func New(client redis.UniversalClient, timeout time.Duration) *Store {
	s := &Store{common: &common{timeout: timeout, listener: noListener{}}, seed: maphash.MakeSeed()}
	s.forecasts.start = time.Now()
	s.giveBack = func(charges []algorithm.Charge) {
		s.InBackground(func() { _ = s.GiveBack(context.Background(), charges) })
	}
	s.scratches.New = func() any { return new(scratch) }
	s.router = newRouter(client, s.common)
	return s
}

// GiveBackBy sets the function that gives back, soon, what some shards charged for a call that
// another one refused. It must be called before the first decision. Without it the store gives back
// by itself.
func (s *Store) GiveBackBy(giveBack func([]algorithm.Charge)) { s.giveBack = giveBack }

// Listen has somebody told of the servers. It is to be called before the first call.
func (s *Store) Listen(l Listener) { s.listener = l }

// trips counts what goes to Redis.
type tripCounts struct {
	sent   atomic.Uint64 // round trips
	calls  atomic.Uint64 // calls that were to be decided
	merged atomic.Uint64 // of these, the ones that left in another's script call
}

// made counts a trip that ended so, with the calls that it was the first for, unless the breaker spared it.
func (t *tripCounts) count(failed error, earlier, calls, scripts int) {
	if failed == errBreakerOpen {
		return
	}
	t.sent.Add(1)
	if earlier > 0 {
		return
	}
	t.calls.Add(uint64(calls))
	if calls > scripts {
		t.merged.Add(uint64(calls - scripts))
	}
}

// Trips counts what went to Redis so far to be decided: round trips, the calls that were on them, and how many of these shared the
// script call of another that asked the same.
func (s *Store) Trips() (trips, calls, merged uint64) {
	return s.trips.sent.Load(), s.trips.calls.Load(), s.trips.merged.Load()
}

// Losses counts how often a server was found to have been restarted or replaced.
func (s *Store) Losses() uint64 { return s.losses.Load() }

// ShardState is how a server's breaker stands.
type ShardState struct {
	Addr    string
	Breaker string // closed, open or half-open
	Opened  uint64 // how often
}

// Shards are the servers that calls went to, in order of their addresses. A client of unknown type has none.
func (s *Store) Shards() (all []ShardState) {
	for _, known := range s.router.all() {
		if b := known.breaker; b != nil {
			all = append(all, ShardState{known.addr, b.circuit.State().String(), b.opened.Load()})
		}
	}
	slices.SortFunc(all, func(a, b ShardState) int { return strings.Compare(a.Addr, b.Addr) })
	return all
}

// Close waits until what was to be given back has been, or could not be in time. The client stays open: it is the caller's.
func (s *Store) Close() { s.close() }

// InBackground runs what Close waits for. Once closed, the caller waits for it.
func (s *Store) InBackground(do func()) {
	if !s.inBackground(do) {
		do()
	}
}

// Decide answers for one call's counters; verdicts is as long as counters. On one shard they are
// charged all or none, in one script. Over several shards they are asked side by side, or first the
// one that will probably refuse; and when one of them refuses, or fails and is Required, what the
// others charged is given back in the background.
//
// A caller whose own context ends gets that as Ended, never as a failure of Redis.
func (s *Store) Decide(ctx context.Context, counters []algorithm.Counter, charge bool, verdicts []algorithm.Verdict) {
	if !s.router.isSharded() || sameHashTag(counters) {
		s.decideOnShard(ctx, ctx, counters, charge, verdicts)
		return
	}
	s.decideOnShards(ctx, counters, charge, verdicts)
}

// Lease charges up to so many calls of a counter's cost, as many as fit, and says how many. The verdict is that of the last one
// granted, or the refusal.
func (s *Store) Lease(ctx context.Context, c *algorithm.Counter, calls int64) (granted int64, v algorithm.Verdict) {
	counter, verdict := [...]algorithm.Counter{*c}, [1]algorithm.Verdict{}
	granted, err := s.callShard(ctx, counter[:], true, calls, verdict[:])
	if err != nil {
		s.failVerdicts(ctx, err, verdict[:])
	}
	return granted, verdict[0]
}

// decide asks one shard for a caller, by a context that may end earlier than theirs.
func (s *Store) decideOnShard(caller, ctx context.Context, counters []algorithm.Counter, charge bool, verdicts []algorithm.Verdict) {
	if _, err := s.callShard(ctx, counters, charge, 1, verdicts); err != nil {
		s.failVerdicts(caller, err, verdicts)
	}
}

// ask asks one shard for so many equal calls, and says how many of them passed, if that can be several. The verdicts are those of
// the last that passed, or of the first.
func (s *Store) callShard(ctx context.Context, counters []algorithm.Counter, charge bool, calls int64, verdicts []algorithm.Verdict) (passed int64, err error) {
	if !s.router.isReady() { // the first look at a cluster is part of the call's time
		deadline, cancel := context.WithTimeout(ctx, s.timeout)
		defer cancel()
		ctx = deadline
	}
	shard, err := s.router.shard(ctx, counters[0].Key)
	if err != nil {
		return 0, err
	}
	hash := s.hashKeys(counters)
	if shard.beginDirect(hash) {
		defer shard.endDirect(hash)
		return s.callDirectly(ctx, shard, counters, charge, calls, nil, verdicts)
	}
	t := shard.enqueue(ctx, counters, charge, calls, hash)
	if err := t.await(); err != nil {
		return 0, err
	}
	defer shard.recycle(t)
	switch {
	case isSlotSplit(t.err), isSlotUnavailable(t.err) && shard.hasMovingSlots():
		// A pipeline neither waits nor follows: others are in it, and behind it.
		rest, cancel := context.WithDeadline(ctx, shard.start.Add(t.queuedAt+s.timeout))
		defer cancel()
		return s.callDirectly(rest, shard, counters, charge, calls, t.err, verdicts)
	case t.err == errUnsent:
		return 0, shard.pipelines.noConnection()
	case t.err != nil:
		return 0, shard.server.explainTooOld(t.err)
	}
	return t.reply.readVerdicts(t.counters, t.ahead, t.calls, verdicts, &t.scratch)
}

// askAlone asks in the caller's own goroutine. The refusal is that of a pipeline which has asked
// before, nil if none has.
func (s *Store) callDirectly(ctx context.Context, shard *shard, counters []algorithm.Counter, charge bool, calls int64, refusal error, verdicts []algorithm.Verdict) (passed int64, err error) {
	deadline, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	a := new(scriptCall)
	a.prepare(counters, charge, calls)
	trips := 0
	if refusal != nil {
		trips = 1
	}
	var p slotSplitRetry
	for again := true; again; trips++ {
		failed := shard.process(deadline, a.command(deadline), refusal)
		refusal = nil
		s.trips.count(failed, trips, 1, 1)
		again, err = a.retry(failed)
		again = again || p.retry(deadline, err)
	}
	if err != nil {
		return 0, shard.server.explainTooOld(err)
	}
	shard.server.answered(a.wasUnknown)
	r := s.scratches.Get().(*scratch)
	defer s.scratches.Put(r)
	answer := a.reply()
	return answer.readVerdicts(counters, 0, calls, verdicts, r)
}

// hash is a number by which calls that ask for the same counters are found to.
func (s *Store) hashKeys(counters []algorithm.Counter) uint64 {
	hash := maphash.Bytes(s.seed, counters[0].Key)
	for i := 1; i < len(counters); i++ {
		hash = hash*31 + maphash.Bytes(s.seed, counters[i].Key)
	}
	return hash
}

// assumedNow returns this process's idea of the time if a script's arguments depend on it. It decides
// nothing: a script whose own clock disagrees asks to be called again, with its time.
func assumedNow(counters []algorithm.Counter) int64 {
	for i := range counters {
		if counters[i].Limit.Dated() {
			return nowMicros()
		}
	}
	return 0
}

func nowMicros() int64 { return time.Now().UnixMicro() }

// fail makes verdicts of what kept the store from answering.
func (s *Store) failVerdicts(caller context.Context, err error, verdicts []algorithm.Verdict) {
	failed := algorithm.Verdict{Ended: failure.CallersEnd(caller)}
	if failed.Ended == nil {
		failed.Err = toFailure(err, s.timeout)
	}
	for i := range verdicts {
		verdicts[i] = failed
	}
}

// each runs something that returns one error, which is the context's own when that has ended.
func (s *Store) withTimeout(ctx context.Context, do func(deadline context.Context) error) error {
	deadline, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	err := do(deadline)
	if err == nil {
		return nil
	}
	if ended := failure.CallersEnd(ctx); ended != nil {
		return ended
	}
	return toFailure(err, s.timeout)
}

// runScript sends a script to the shard of its keys. Every script replies a list.
func (s *Store) runScript(ctx context.Context, script *algorithm.Script, call []any) ([]any, error) {
	shard, err := s.router.shard(ctx, []byte(call[3].(string)))
	if err != nil {
		return nil, err
	}
	var p slotSplitRetry
	for {
		cmd := redis.NewCmd(ctx, call...)
		err = shard.node.process(ctx, &valueCommand{Cmd: cmd})
		if isReply(err, "NOSCRIPT") {
			cmd = redis.NewCmd(ctx, asEval(call, script)...)
			err = shard.node.process(ctx, &valueCommand{Cmd: cmd})
		}
		switch {
		case err == nil:
			return cmd.Slice()
		case !p.retry(ctx, err):
			return nil, shard.server.explainTooOld(withForeignKeys(err, call[3:3+call[2].(int)]))
		}
	}
}
