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
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/accesslimit/accesslimit/core/internal/algorithm"
)

// Store decides through one client. It is safe for concurrent use.
type Store struct {
	router  router
	timeout time.Duration

	mu         sync.Mutex
	closed     bool
	background sync.WaitGroup // charges that are being given back; none is added once closed
}

// New makes a store. It connects to nothing. Timeout bounds every call.
func New(client redis.UniversalClient, timeout time.Duration) *Store {
	return &Store{router: newRouter(client, timeout), timeout: timeout}
}

// Close waits until what was to be given back has been, or could not be in time. The client stays open: it is the caller's.
func (s *Store) Close() {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	s.background.Wait()
}

// inBackground runs what Close waits for. Once closed, the caller waits for it.
func (s *Store) inBackground(do func()) {
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
	deadline, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	if s.router.together(counters) {
		s.decide(deadline, ctx, counters, charge, verdicts)
		return
	}
	s.decideApart(deadline, ctx, counters, charge, verdicts)
}

// decide asks one shard. It returns when the counters were charged, by Redis's clock.
func (s *Store) decide(deadline, caller context.Context, counters []algorithm.Counter, charge bool, verdicts []algorithm.Verdict) (at int64) {
	numbers, err := s.run(deadline, algorithm.DecideScript(counters), counters, flag(charge))
	if err == nil {
		at, err = readReply(numbers, verdicts)
	}
	if err != nil {
		failed := algorithm.Verdict{Ended: callersEnd(caller)}
		if failed.Ended == nil {
			failed.Err = s.explain(deadline, err)
		}
		for i := range verdicts {
			verdicts[i] = failed
		}
	}
	return at
}

// run sends a script to the shard of its counters and returns the integers that it replies.
func (s *Store) run(ctx context.Context, script *algorithm.Script, counters []algorithm.Counter, first int64) ([]int64, error) {
	call := scriptCall(script, counters, first)
	node, err := s.router.node(ctx, call[3].(string))
	if err != nil {
		return nil, err
	}
	cmd := redis.NewCmd(ctx, call...)
	err = node.process(ctx, cmd)
	if redis.HasErrorPrefix(err, "NOSCRIPT") {
		cmd = redis.NewCmd(ctx, withText(call, script)...)
		err = node.process(ctx, cmd)
	}
	if err != nil {
		return nil, err
	}
	return cmd.Int64Slice()
}

// Reset forgets a key. Its error is the context's own when that has ended.
func (s *Store) Reset(ctx context.Context, key []byte) error {
	deadline, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	node, err := s.router.node(deadline, string(key))
	if err == nil {
		err = node.process(deadline, redis.NewCmd(deadline, "del", string(key)))
	}
	if err == nil {
		return nil
	}
	if ended := callersEnd(ctx); ended != nil {
		return ended
	}
	return s.explain(deadline, err)
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
	if deadline.Err() != nil || errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) {
		return fmt.Errorf("no answer within %v: %v", s.timeout, err)
	}
	return err
}

func flag(set bool) int64 {
	if set {
		return 1
	}
	return 0
}
