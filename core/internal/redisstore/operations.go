package redisstore

import (
	"context"
	"errors"
	"sync"

	"github.com/redis/go-redis/v9"

	"github.com/accesslimit/accesslimit/core/internal/algorithm"
)

// Reserve takes a turn at a bucket, if it comes within patience, in microseconds.
func (s *Store) Reserve(ctx context.Context, c *algorithm.Counter, patience int64) (v algorithm.Verdict) {
	deadline, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	call := algorithm.AppendReserve(onKey(algorithm.Reserve, c.Key), c, patience)
	reply, err := s.runScript(deadline, algorithm.Reserve, call)
	if err == nil {
		v, err = algorithm.ReadReserved(reply)
	}
	if err != nil {
		var failed [1]algorithm.Verdict
		s.failVerdicts(ctx, err, failed[:])
		return failed[0]
	}
	return v
}

// GiveBack gives charges back, as far as they still count. It goes on when the context has ended: charges are given back when
// their caller has left, too.
func (s *Store) GiveBack(ctx context.Context, charges []algorithm.Charge) error {
	deadline, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.timeout)
	defer cancel()
	return s.runOnShards(deadline, charges, giveBackCall)
}

// runOnShards runs the script that each part of the charges needs, on all shards that they lie on at
// once: one that does not answer must not delay the others.
func (s *Store) runOnShards(deadline context.Context, charges []algorithm.Charge, call func([]algorithm.Charge) (*algorithm.Script, []any)) error {
	parts := s.splitCharges(charges)
	failed := make([]error, len(parts))
	ask := func(i int) {
		script, command := call(parts[i])
		if _, err := s.runScript(deadline, script, command); err != nil {
			failed[i] = toFailure(err, s.timeout)
		}
	}
	var others sync.WaitGroup
	for i := 1; i < len(parts); i++ {
		others.Go(func() { ask(i) })
	}
	ask(0)
	others.Wait()
	return errors.Join(failed...)
}

// Renew keeps the slots of a call in flight for another window each.
func (s *Store) Renew(ctx context.Context, slots []algorithm.Charge) error {
	deadline, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	return s.runOnShards(deadline, slots, renewCall)
}

// Records are the calls that count in a log now, newest first.
func (s *Store) Records(ctx context.Context, key []byte, limit *algorithm.Limit) ([]algorithm.Record, error) {
	var records []algorithm.Record
	err := s.withTimeout(ctx, func(deadline context.Context) error {
		call := algorithm.AppendRecords(onKey(algorithm.Records, key), limit)
		reply, err := s.runScript(deadline, algorithm.Records, call)
		if err == nil {
			records, err = algorithm.ReadRecords(reply)
		}
		return err
	})
	return records, err
}

// Ban bans a subject by hand, for so many microseconds, and reports whether that made its ban longer.
// The key is that of its ban.
func (s *Store) Ban(ctx context.Context, key []byte, span int64) (changed bool, err error) {
	err = s.withTimeout(ctx, func(deadline context.Context) error {
		reply, err := s.runScript(deadline, algorithm.ImposeBan, algorithm.AppendImpose(onKey(algorithm.ImposeBan, key), span))
		if err == nil {
			changed, err = algorithm.ReadImposed(reply)
		}
		return err
	})
	return changed, err
}

// Reset forgets a key, and reports whether it was there.
func (s *Store) Reset(ctx context.Context, key []byte) (changed bool, err error) {
	err = s.withTimeout(ctx, func(deadline context.Context) error {
		shard, err := s.router.shard(deadline, key)
		if err != nil {
			return err
		}
		del := &valueCommand{Cmd: redis.NewCmd(deadline, "del", string(key))}
		if err := shard.node.process(deadline, del); err != nil {
			return err
		}
		deleted, err := del.Int()
		changed = deleted > 0
		return err
	})
	return changed, err
}
