// Package redisstore keeps counters in Redis.
//
// The counters that share a shard are decided by one script call: EVALSHA, or EVAL where the server does not know the
// script yet. A call is never sent twice otherwise, because the first may have charged; it returns by its deadline,
// whatever Redis does and however the client was configured.
package redisstore

import (
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/accesslimit/accesslimit/core/internal/algorithm"
)

// Store decides through one client. It is safe for concurrent use.
type Store struct {
	router  router
	timeout time.Duration
	trips   trips
	seed    maphash.Seed
	rooms   sync.Pool // of *room
	hear    func([]algorithm.Charge)

	mu         sync.Mutex
	closed     bool
	background sync.WaitGroup // charges that are being given back; none is added once closed
}

// New makes a store. It connects to nothing. Timeout bounds every call.
func New(client redis.UniversalClient, timeout time.Duration) *Store {
	s := &Store{timeout: timeout, seed: maphash.MakeSeed(), hear: func([]algorithm.Charge) {}}
	s.rooms.New = func() any { return new(room) }
	s.router = newRouter(client, timeout, &s.trips)
	return s
}

// HearGivenBack has a function called with what is given back because a call over several shards was refused. It is to be set
// before the first call.
func (s *Store) HearGivenBack(hear func([]algorithm.Charge)) { s.hear = hear }

// trips counts what goes to Redis.
type trips struct {
	sent   atomic.Uint64 // round trips
	calls  atomic.Uint64 // calls that were to be decided
	merged atomic.Uint64 // of these, the ones that left in another's script call
}

func (t *trips) count(calls, scripts int) {
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

// Close waits until what was to be given back has been, or could not be in time. The client stays open: it is the caller's.
func (s *Store) Close() {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	s.background.Wait()
}

// InBackground runs what Close waits for. Once closed, the caller waits for it.
func (s *Store) InBackground(do func()) {
	s.mu.Lock()
	closed := s.closed
	if !closed {
		s.background.Go(do)
	}
	s.mu.Unlock()
	if closed {
		do()
	}
}

// Decide answers for one call's counters; verdicts is as long as counters. On one shard they are charged all or none, in
// one script. Over several shards they are asked side by side, and when one of them refuses, or fails and is Required,
// what the others charged is given back in the background.
//
// A caller whose own context ends gets that as Ended, never as a failure of Redis.
func (s *Store) Decide(ctx context.Context, counters []algorithm.Counter, charge bool, verdicts []algorithm.Verdict) {
	if !s.router.apart() || sameTag(counters) {
		s.decide(ctx, counters, charge, verdicts)
		return
	}
	s.decideApart(ctx, counters, charge, verdicts)
}

// Lease charges up to so many calls of a counter's cost, as many as fit, and says how many. The verdict is that of the last one
// granted, or the refusal.
func (s *Store) Lease(ctx context.Context, c *algorithm.Counter, calls int64) (granted int64, v algorithm.Verdict) {
	counter, verdict := [...]algorithm.Counter{*c}, [1]algorithm.Verdict{}
	granted, err := s.ask(ctx, counter[:], true, calls, verdict[:])
	if err != nil {
		s.fail(ctx, err, verdict[:])
	}
	return granted, verdict[0]
}

// decide asks one shard.
func (s *Store) decide(ctx context.Context, counters []algorithm.Counter, charge bool, verdicts []algorithm.Verdict) {
	if _, err := s.ask(ctx, counters, charge, 1, verdicts); err != nil {
		s.fail(ctx, err, verdicts)
	}
}

// ask asks one shard for so many equal calls, and says how many of them passed, if that can be several. The verdicts are those of
// the last that passed, or of the first.
func (s *Store) ask(ctx context.Context, counters []algorithm.Counter, charge bool, calls int64, verdicts []algorithm.Verdict) (passed int64, err error) {
	if !s.router.ready() { // the first look at a cluster is part of the call's time
		deadline, cancel := context.WithTimeout(ctx, s.timeout)
		defer cancel()
		ctx = deadline
	}
	shard, err := s.router.shard(ctx, counters[0].Key)
	if err != nil {
		return 0, explain(err, s.timeout)
	}
	hash := s.hash(counters)
	if shard.goAlone(hash) {
		defer shard.comeBack(hash)
		return s.askAlone(ctx, shard, counters, charge, calls, verdicts)
	}
	t := shard.queue(ctx, counters, charge, calls, hash)
	if err := t.wait(); err != nil {
		return 0, explain(err, s.timeout)
	}
	defer shard.giveBack(t)
	if t.err != nil {
		return 0, t.err
	}
	return t.answer.read(t.counters, t.behind, t.calls, verdicts, &t.room)
}

// askAlone asks in the caller's own goroutine.
func (s *Store) askAlone(ctx context.Context, shard *shard, counters []algorithm.Counter, charge bool, calls int64, verdicts []algorithm.Verdict) (passed int64, err error) {
	deadline, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	a := new(asking)
	a.begin(counters, charge, calls)
	s.trips.count(1, 1)
	for again := true; again; {
		s.trips.sent.Add(1)
		again, err = a.heed(shard.node.process(deadline, a.command(deadline)))
	}
	if err != nil {
		return 0, s.explain(deadline, err)
	}
	r := s.rooms.Get().(*room)
	defer s.rooms.Put(r)
	answer := a.answer()
	return answer.read(counters, 0, calls, verdicts, r)
}

// hash is a number by which calls that ask for the same counters are found to.
func (s *Store) hash(counters []algorithm.Counter) uint64 {
	hash := maphash.Bytes(s.seed, counters[0].Key)
	for i := 1; i < len(counters); i++ {
		hash = hash*31 + maphash.Bytes(s.seed, counters[i].Key)
	}
	return hash
}

// aboutNow is this process's idea of the time where a calendar is asked for: Redis knows no zones. It decides nothing: a
// script whose own clock disagrees asks to be called again, with its time.
func aboutNow(counters []algorithm.Counter) int64 {
	for i := range counters {
		if counters[i].Limit.Kind == algorithm.CalendarWindow {
			return nowMicros()
		}
	}
	return 0
}

func nowMicros() int64 { return time.Now().UnixMicro() }

// fail makes verdicts of what kept the store from answering.
func (s *Store) fail(caller context.Context, err error, verdicts []algorithm.Verdict) {
	failed := algorithm.Verdict{Ended: callersEnd(caller)}
	if failed.Ended == nil {
		failed.Err = err
	}
	for i := range verdicts {
		verdicts[i] = failed
	}
}

// each runs something that returns one error, which is the context's own when that has ended.
func (s *Store) each(ctx context.Context, do func(deadline context.Context) error) error {
	deadline, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	err := do(deadline)
	if err == nil {
		return nil
	}
	if ended := callersEnd(ctx); ended != nil {
		return ended
	}
	return s.explain(deadline, err)
}

// numbers runs a script that replies integers.
func (s *Store) numbers(ctx context.Context, script *algorithm.Script, call []any) ([]int64, error) {
	cmd, err := s.run(ctx, script, call)
	if err != nil {
		return nil, err
	}
	return cmd.Int64Slice()
}

// run sends a script to the shard of its keys.
func (s *Store) run(ctx context.Context, script *algorithm.Script, call []any) (*redis.Cmd, error) {
	shard, err := s.router.shard(ctx, []byte(call[3].(string)))
	if err != nil {
		return nil, err
	}
	cmd := redis.NewCmd(ctx, call...)
	err = shard.node.process(ctx, once{cmd})
	if redis.HasErrorPrefix(err, "NOSCRIPT") {
		cmd = redis.NewCmd(ctx, withText(call, script)...)
		err = shard.node.process(ctx, once{cmd})
	}
	if err != nil {
		return nil, namedKeys(err, call[3:3+call[2].(int)])
	}
	return cmd, nil
}

// callersEnd is the error of a context that has ended; nil while it goes on. A socket's deadline can pass a moment before
// the context's own timer fires, so the time is looked at too.
func callersEnd(caller context.Context) error {
	if ended := caller.Err(); ended != nil {
		return ended
	}
	if at, ok := caller.Deadline(); ok && !time.Now().Before(at) {
		return context.DeadlineExceeded
	}
	return nil
}

// explain names our own timeout where that is what ended the call. It wraps no context error: that is only ever the caller's.
func (s *Store) explain(deadline context.Context, err error) error {
	if deadline.Err() != nil {
		return noAnswer(s.timeout, err)
	}
	return explain(err, s.timeout)
}

func explain(err error, timeout time.Duration) error {
	if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) {
		return noAnswer(timeout, err)
	}
	return err
}

func noAnswer(timeout time.Duration, err error) error {
	return fmt.Errorf("no answer within %v: %v", timeout, err)
}

// named names the keys of a script that met a value which is none of ours.
func named(err error, counters []algorithm.Counter) error {
	keys := make([]string, len(counters))
	for i := range counters {
		keys[i] = string(counters[i].Key)
	}
	return namedKeys(err, keys)
}

func namedKeys(err error, keys any) error {
	for _, sign := range foreign {
		if strings.Contains(err.Error(), sign) {
			return fmt.Errorf("%w: one of %q: %w", ErrForeign, keys, err)
		}
	}
	return err
}

// ErrForeign says that a key of ours holds what we never wrote.
var ErrForeign = errors.New("a key of this limiter holds something else, which is left as it is; choose a Prefix that nobody else writes to, or remove the key")

// foreign are the words of Redis, and of our scripts, for a value that is not a counter.
var foreign = [...]string{"WRONGTYPE", "NOTACOUNTER", "data string too short"}
