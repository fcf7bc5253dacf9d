package redisstore

import (
	"context"
	"errors"

	"github.com/redis/go-redis/v9"

	"github.com/accesslimit/accesslimit/core/internal/algorithm"
	"github.com/accesslimit/accesslimit/core/internal/failure"
)

// Change changes counters after calls. What is given back comes back even if the context has ended, because
// charges are also given back for callers who have left. Otherwise, the error is the caller's own if the
// context has ended. If it is of the store, it is a *failure.Error, or the joined ones of several shards.
func (s *Store) Change(ctx context.Context, c *algorithm.Change) (err error) {
	switch c.Kind {
	case algorithm.ChangesBill:
		err = s.changeBill(ctx, c)
	case algorithm.GivesBack:
		err = s.changeOnShards(context.WithoutCancel(ctx), c)
	default:
		err = s.changeOnShards(ctx, c)
	}
	if !c.Turn {
		s.refundsLost.Add(uint64(c.Lost))
	}
	return err
}

// changeBill is Change for a bill. It goes through a lane, because calls may change bills often.
func (s *Store) changeBill(ctx context.Context, c *algorithm.Change) error {
	r, verdicts := s.newRequest(algorithm.Op{Counters: c.Bill.Counters()}), [1]algorithm.Verdict{}
	r.operation = changing(c)
	r.operation.read = c.Read
	s.decideOnShard(ctx, ctx, r, verdicts[:])
	if ended := verdicts[0].Ended; ended != nil {
		return ended
	}
	return verdicts[0].Err
}

// changing returns the operation that changes counters.
func changing(c *algorithm.Change) *operation {
	return &operation{args: func(at int64) (*algorithm.Script, []any) {
		script := c.Script()
		return script, c.Append(onKeys(script, c.Len(), c.KeyAt, c.Record(), 1+3*c.Len()), at)
	}}
}

// RefundsLost returns how many permits may still have counted but were not given back.
func (s *Store) RefundsLost() uint64 { return s.refundsLost.Load() }

// Records returns the calls that count in a log now, newest first.
func (s *Store) Records(ctx context.Context, key []byte, limit *algorithm.Limit) (records []algorithm.Record, err error) {
	call := newOperation(func(int64) (*algorithm.Script, []any) {
		return algorithm.Records, algorithm.AppendRecords(onKey(algorithm.Records, key), limit)
	})
	err = s.withTimeout(ctx, func(deadline context.Context) error {
		reply, err := s.runList(deadline, key, call)
		if err == nil {
			records, err = algorithm.ReadRecords(reply)
		}
		return err
	})
	return records, err
}

// Reset deletes keys of one hash tag, and reports whether any existed. One command for all of them
// takes no longer than Timeout.
func (s *Store) Reset(ctx context.Context, keys ...[]byte) (changed bool, err error) {
	err = s.withTimeout(ctx, func(deadline context.Context) error {
		deleted, err := s.del(deadline, keys)
		changed = deleted > 0
		if !isSlotSplit(err) {
			return err
		}
		for i := range keys { // while the slot is being moved, each key is on one side or the other
			deleted, err := s.del(deadline, keys[i:i+1])
			changed = changed || deleted > 0
			if err != nil {
				return err
			}
		}
		return nil
	})
	return changed, err
}

func (s *Store) del(deadline context.Context, keys [][]byte) (deleted int, err error) {
	shard, err := s.router.shard(deadline, keys[0])
	if err != nil {
		return 0, err
	}
	args := make([]any, 1, 1+len(keys))
	args[0] = "del"
	for _, key := range keys {
		args = append(args, string(key))
	}
	del := &valueCommand{Cmd: redis.NewCmd(deadline, args...)}
	if err := shard.node.process(deadline, del); err != nil {
		return 0, err
	}
	return del.Int()
}

// withTimeout runs an operation within Timeout. Its error is the context's own if that has ended.
func (s *Store) withTimeout(ctx context.Context, do func(deadline context.Context) error) error {
	deadline, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	return s.failureOf(ctx, do(deadline))
}

// changeOnShards is Change for charges or a pause. If it is proved that one server holds all keys, it runs
// the script once, and otherwise on all their shards at the same time, so that a shard that does not answer
// does not delay the others. It returns the failures of all shards, joined.
func (s *Store) changeOnShards(ctx context.Context, c *algorithm.Change) error {
	deadline, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	run := func(c *algorithm.Change, proof *oneServerProof) error {
		call := &scriptCall{request: request{operation: changing(c), proof: proof}}
		reply, err := s.runList(deadline, c.KeyAt(0), call)
		if err == nil {
			err = c.Read(reply)
		}
		return err
	}
	parts := splitByKey(c)
	if proof := s.router.proof(); len(parts) > 1 && proof.wanted() {
		if err := run(c, proof); err != errUnproved {
			return s.failureOf(ctx, err)
		}
	}
	failed := s.sideBySide(len(parts), func(i int) error { return run(&parts[i], nil) })
	for i, err := range failed {
		failed[i] = s.failureOf(ctx, err)
		c.Lost += parts[i].Lost
		c.Paused = parts[i].Paused
	}
	return errors.Join(failed...)
}

// failureOf returns what an error is for the caller: his own if his context has ended, or a failure.
func (s *Store) failureOf(caller context.Context, err error) error {
	if err == nil {
		return nil
	}
	if ended := failure.CallersEnd(caller); ended != nil {
		return ended
	}
	return toFailure(err, s.timeout)
}

// runList runs a script on the shard of a key, and returns its reply.
func (s *Store) runList(ctx context.Context, key []byte, c *scriptCall) (reply []string, err error) {
	shard, err := s.router.shard(ctx, key)
	if err != nil {
		return nil, err
	}
	if err := shard.runScript(ctx, c, nil); err != nil {
		return nil, err
	}
	return c.cmd.Val(), nil
}

// runScript decides on the shard of a key, and returns the reply.
func (s *Store) runScript(ctx context.Context, key []byte, c *scriptCall) (r scriptReply, err error) {
	if _, err := s.runList(ctx, key, c); err != nil {
		return r, err
	}
	return c.reply()
}
