package redisstore

import (
	"bytes"
	"context"
	"errors"

	"github.com/redis/go-redis/v9"

	"github.com/accesslimit/accesslimit/core/internal/algorithm"
	"github.com/accesslimit/accesslimit/core/internal/failure"
)

// act carries out an op on counters that lie on one shard.
func (s *Store) act(ctx context.Context, op algorithm.Op, verdicts []algorithm.Verdict) {
	s.decideOnShard(ctx, ctx, s.newRequest(op), verdicts)
}

// DecideUpTo charges as much of the counters' cost as fits into all of them, on one shard. The cost
// is the same for all. It sets their Cost to the cost that it decided: as much as fits, or 1 if
// nothing fits.
func (s *Store) DecideUpTo(ctx context.Context, counters []algorithm.Counter, verdicts []algorithm.Verdict) {
	s.act(ctx, algorithm.Op{Mode: algorithm.UpTo, Counters: counters, Calls: 1}, verdicts)
}

// Charge charges the counters, which lie on one shard, whether their costs fit or not. share bounds
// the debt: see algorithm.Limit.Debt. With a record, they are charged once: see algorithm.Charge.
func (s *Store) Charge(ctx context.Context, counters []algorithm.Counter, share float64, record []byte, verdicts []algorithm.Verdict) {
	s.act(ctx, algorithm.Op{Mode: algorithm.InDebt, Counters: counters, Calls: 1, Share: share, Record: bytes.Clone(record)}, verdicts)
}

// Open decides a call on one shard like Decide and, if it passes, records a bill. All counters have
// one cost.
func (s *Store) Open(ctx context.Context, counters []algorithm.Counter, b algorithm.OpenBill, verdicts []algorithm.Verdict) {
	b.Key = bytes.Clone(b.Key)
	s.act(ctx, algorithm.Op{Mode: algorithm.AllOrNone, Counters: counters, Calls: 1, Bill: &b}, verdicts)
}

// Reserve takes a turn at a bucket, if it comes within patience, in microseconds. It sends nothing
// for a caller who has left. If the caller leaves afterwards, Reserve still returns the answer, so
// that the turn can be given back.
func (s *Store) Reserve(ctx context.Context, c *algorithm.Counter, patience int64) algorithm.Verdict {
	deadline, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.timeout)
	defer cancel()
	counters, verdicts := []algorithm.Counter{*c}, [1]algorithm.Verdict{}
	call := newDecision(s.newRequest(algorithm.Op{Mode: algorithm.InTurn, Counters: counters, Calls: 1, Patience: patience}))
	call.caller = ctx
	reply, err := s.runScript(deadline, c.Key, call)
	if err == nil {
		_, err = reply.readVerdicts(&call.request, 0, verdicts[:], new(scratch))
	}
	if err != nil {
		return s.failedVerdict(ctx, err)
	}
	return verdicts[0]
}

// Settle changes a bill. The error is the caller's own if the context has ended, and otherwise a
// *failure.Error.
func (s *Store) Settle(ctx context.Context, b *algorithm.Bill, change algorithm.BillChange) (a algorithm.BillAnswer, err error) {
	r := s.newRequest(algorithm.Op{Counters: b.Counters()})
	r.operation = &operation{
		args: func(at int64) (*algorithm.Script, []any) {
			script := b.SettleScript()
			return script, b.AppendSettle(onKeys(script, len(b.Charges), func(i int) []byte { return b.Charges[i].Key }, b.Key, 1+3*len(b.Charges)), change, at)
		},
		read: func(reply []string) (err error) {
			a, err = b.ReadSettled(reply, change)
			return err
		},
	}
	verdicts := [1]algorithm.Verdict{}
	s.decideOnShard(ctx, ctx, r, verdicts[:])
	if ended := verdicts[0].Ended; ended != nil {
		return a, ended
	}
	s.refundsLost.Add(uint64(a.Lost))
	return a, verdicts[0].Err
}

// changing returns the call that changes counters.
func changing(c algorithm.Change) *scriptCall {
	return newOperation(func(int64) (*algorithm.Script, []any) {
		script := c.Script()
		return script, c.Append(onKeys(script, c.Len(), c.KeyAt, c.Record(), 1+2*c.Len()))
	})
}

// change changes counters of one shard. read reads the reply.
func (s *Store) change(ctx context.Context, c algorithm.Change, read func(c *algorithm.Change, reply []string) error) error {
	return s.withTimeout(ctx, func(deadline context.Context) error {
		reply, err := s.runList(deadline, c.KeyAt(0), changing(c))
		if err == nil {
			err = read(&c, reply)
		}
		return err
	})
}

// GiveBack gives charges back, as far as they still count, even if the context has ended, because
// charges are also given back for callers who have left.
func (s *Store) GiveBack(ctx context.Context, charges []algorithm.Charge) error {
	return s.changeOnShards(context.WithoutCancel(ctx), algorithm.Change{Charges: charges}, func(c *algorithm.Change, reply []string) error {
		lost, err := c.ReadLost(reply)
		s.refundsLost.Add(uint64(lost))
		return err
	})
}

// GiveBackTurn gives back a turn, as far as it still counts and nobody waits behind it, even if the
// context has ended. It returns how many of its permits stay because of those who wait.
func (s *Store) GiveBackTurn(ctx context.Context, turn algorithm.Charge) (stays int64, err error) {
	c := algorithm.Change{Charges: []algorithm.Charge{turn}}
	err = s.change(context.WithoutCancel(ctx), c, func(c *algorithm.Change, reply []string) (err error) {
		stays, err = c.ReadLost(reply)
		return err
	})
	return stays, err
}

// RefundsLost returns how many permits may still have counted but were not given back.
func (s *Store) RefundsLost() uint64 { return s.refundsLost.Load() }

// Renew keeps the slots of a call in flight for another window each.
func (s *Store) Renew(ctx context.Context, slots []algorithm.Charge) error {
	return s.changeOnShards(ctx, algorithm.Change{Charges: slots, Renews: true}, nil)
}

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

// Pause begins a pause of the calls that go out, or makes it longer. key is the pause's.
func (s *Store) Pause(ctx context.Context, key []byte, p *algorithm.Pause) (now algorithm.Paused, err error) {
	err = s.change(ctx, algorithm.Change{Key: key, Pause: p}, func(c *algorithm.Change, reply []string) (err error) {
		now, err = c.ReadPaused(reply)
		return err
	})
	return now, err
}

// PauseOver forgets the refusals before a pause that is over.
func (s *Store) PauseOver(ctx context.Context, key []byte) error {
	return s.change(ctx, algorithm.Change{Key: key}, func(*algorithm.Change, []string) error { return nil })
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
	err := do(deadline)
	if err == nil {
		return nil
	}
	if ended := failure.CallersEnd(ctx); ended != nil {
		return ended
	}
	return toFailure(err, s.timeout)
}

// changeOnShards changes charges. If it is proved that one server holds all of them, it runs
// the script once, and otherwise on all their shards at the same time, so that a shard that does
// not answer does not delay the others. It returns the failures of all shards, joined. If read is
// not nil, it reads the replies.
func (s *Store) changeOnShards(ctx context.Context, c algorithm.Change, read func(c *algorithm.Change, reply []string) error) error {
	deadline, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	run := func(c algorithm.Change, proof *oneServerProof) error {
		call := changing(c)
		call.proof = proof
		reply, err := s.runList(deadline, c.KeyAt(0), call)
		if err == nil && read != nil {
			err = read(&c, reply)
		}
		return err
	}
	parts := splitCharges(c.Charges)
	if proof := s.router.proof(); len(parts) > 1 && proof.wanted() {
		switch err := run(c, proof); {
		case err == nil:
			return nil
		case err != errUnproved:
			return toFailure(err, s.timeout)
		}
	}
	failed := s.sideBySide(len(parts), func(i int) error {
		return run(algorithm.Change{Charges: parts[i], Renews: c.Renews}, nil)
	})
	for i, err := range failed {
		if err != nil {
			failed[i] = toFailure(err, s.timeout)
		}
	}
	return errors.Join(failed...)
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
