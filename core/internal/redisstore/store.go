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
	"strings"
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
	deadline, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	if !s.router.apart() || sameTag(counters) {
		s.decide(deadline, ctx, counters, charge, verdicts)
		return
	}
	s.decideApart(deadline, ctx, counters, charge, verdicts)
}

// decide asks one shard.
func (s *Store) decide(deadline, caller context.Context, counters []algorithm.Counter, charge bool, verdicts []algorithm.Verdict) {
	at := aboutNow(counters)
	numbers, err := s.ask(deadline, counters, charge, at)
	if err == nil && askAgain(numbers) {
		numbers, err = s.ask(deadline, counters, charge, numbers[0])
	}
	if err == nil {
		err = readReply(numbers, verdicts)
	}
	if err != nil {
		s.fail(deadline, caller, err, verdicts)
	}
}

// ask runs the script that decides over the counters of one shard.
func (s *Store) ask(deadline context.Context, counters []algorithm.Counter, charge bool, at int64) ([]int64, error) {
	script := algorithm.DecideScript(counters)
	return s.numbers(deadline, script, decideCall(script, counters, charge, at))
}

// aboutNow is this process's idea of the time where a calendar is asked for: Redis knows no zones. It decides nothing: a
// script whose own clock disagrees asks to be called again, with its time.
func aboutNow(counters []algorithm.Counter) int64 {
	for i := range counters {
		if counters[i].Limit.Kind == algorithm.CalendarWindow {
			return time.Now().UnixMicro()
		}
	}
	return 0
}

// fail makes verdicts of what kept the store from answering.
func (s *Store) fail(deadline, caller context.Context, err error, verdicts []algorithm.Verdict) {
	failed := algorithm.Verdict{Ended: callersEnd(caller)}
	if failed.Ended == nil {
		failed.Err = s.explain(deadline, err)
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
		return nil, named(err, call)
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
	if deadline.Err() != nil || errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) {
		return fmt.Errorf("no answer within %v: %v", s.timeout, err)
	}
	return err
}

// named names the keys of a script that met a value which is none of ours.
func named(err error, call []any) error {
	for _, sign := range foreign {
		if strings.Contains(err.Error(), sign) {
			return fmt.Errorf("%w: one of %q: %w", ErrForeign, call[3:3+call[2].(int)], err)
		}
	}
	return err
}

// ErrForeign says that a key of ours holds what we never wrote.
var ErrForeign = errors.New("a key of this limiter holds something else, which is left as it is; choose a Prefix that nobody else writes to, or remove the key")

// foreign are the words of Redis, and of our scripts, for a value that is not a counter.
var foreign = [...]string{"WRONGTYPE", "NOTACOUNTER", "data string too short"}
