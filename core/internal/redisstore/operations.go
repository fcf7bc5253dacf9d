package redisstore

import (
	"context"
	"errors"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/accesslimit/accesslimit/core/internal/algorithm"
	"github.com/accesslimit/accesslimit/core/internal/failure"
)

// Reserve takes a turn at a bucket, if it comes within patience, in microseconds. It sends nothing
// for a caller who has left. If the caller leaves afterwards, Reserve still returns the answer, so
// that the turn can be given back.
func (s *Store) Reserve(ctx context.Context, c *algorithm.Counter, patience int64) (v algorithm.Verdict) {
	deadline, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.timeout)
	defer cancel()
	call := newOperation(algorithm.Reserve, algorithm.AppendReserve(onKey(algorithm.Reserve, c.Key), c, patience))
	call.caller = ctx
	reply, err := s.runScript(deadline, call)
	if err == nil {
		v, err = algorithm.ReadReserved(reply, c)
	}
	if err != nil {
		return s.failedVerdict(ctx, err)
	}
	return v
}

// DecideUpTo charges as much of the counters' cost as fits into all of them, on one shard. The cost
// is the same for all. It sets their Cost to the cost that it decided: as much as fits, or 1 if
// nothing fits.
func (s *Store) DecideUpTo(ctx context.Context, counters []algorithm.Counter, verdicts []algorithm.Verdict) {
	deadline, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	granted, err := s.chargeUpTo(deadline, counters, verdicts)
	if err != nil {
		s.failVerdicts(ctx, err, verdicts)
		return
	}
	algorithm.SetCost(counters, max(1, granted))
}

func (s *Store) chargeUpTo(deadline context.Context, counters []algorithm.Counter, verdicts []algorithm.Verdict) (granted int64, err error) {
	c := &scriptCall{request: request{counters: counters}, kind: upToKind, now: assumedNow(counters)}
	began := time.Now()
	reply, err := s.runScript(deadline, c)
	s.observe(s.hashKey(counters[0].Key), time.Since(began), err)
	if err != nil {
		return 0, err
	}
	return algorithm.ReadUpTo(reply, counters, verdicts)
}

// GiveBack gives charges back, as far as they still count, even if the context has ended, because
// charges are also given back for callers who have left.
func (s *Store) GiveBack(ctx context.Context, charges []algorithm.Charge) error {
	return s.runOnShards(context.WithoutCancel(ctx), charges, func(charges []algorithm.Charge) *scriptCall {
		script := algorithm.GiveBackScript(charges)
		return newOperation(script, algorithm.AppendGiveBack(onCharges(script, charges), charges))
	}, func(reply []any) error {
		lost, err := algorithm.ReadGivenBack(reply)
		s.refundsLost.Add(uint64(lost))
		return err
	})
}

// GiveBackTurn gives back a turn, as far as it still counts and nobody waits behind it, even if the
// context has ended. It returns how many of its permits stay because of those who wait.
func (s *Store) GiveBackTurn(ctx context.Context, turn algorithm.Charge) (stays int64, err error) {
	charges := []algorithm.Charge{turn}
	err = s.withTimeout(context.WithoutCancel(ctx), func(deadline context.Context) error {
		script := algorithm.GiveBackScript(charges)
		reply, err := s.runScript(deadline, newOperation(script, algorithm.AppendGiveBack(onCharges(script, charges), charges)))
		if err == nil {
			stays, err = algorithm.ReadGivenBack(reply)
		}
		return err
	})
	return stays, err
}

// RefundsLost returns how many permits may still have counted but were not given back.
func (s *Store) RefundsLost() uint64 { return s.refundsLost.Load() }

// Renew keeps the slots of a call in flight for another window each.
func (s *Store) Renew(ctx context.Context, slots []algorithm.Charge) error {
	return s.runOnShards(ctx, slots, func(slots []algorithm.Charge) *scriptCall {
		return newOperation(algorithm.Renew, algorithm.AppendRenew(onCharges(algorithm.Renew, slots), slots))
	}, nil)
}

// Records returns the calls that count in a log now, newest first.
func (s *Store) Records(ctx context.Context, key []byte, limit *algorithm.Limit) (records []algorithm.Record, err error) {
	err = s.withTimeout(ctx, func(deadline context.Context) error {
		args := algorithm.AppendRecords(onKey(algorithm.Records, key), limit)
		reply, err := s.runScript(deadline, newOperation(algorithm.Records, args))
		if err == nil {
			records, err = algorithm.ReadRecords(reply)
		}
		return err
	})
	return records, err
}

// Pause begins a pause of the calls that go out, or makes it longer. key is the pause's.
func (s *Store) Pause(ctx context.Context, key []byte, p *algorithm.Pause) (now algorithm.Paused, err error) {
	err = s.withTimeout(ctx, func(deadline context.Context) error {
		args := algorithm.AppendPause(onKey(algorithm.BeginPause, key), p)
		reply, err := s.runScript(deadline, newOperation(algorithm.BeginPause, args))
		if err == nil {
			now, err = algorithm.ReadPaused(reply)
		}
		return err
	})
	return now, err
}

// PauseOver forgets the refusals before a pause that is over.
func (s *Store) PauseOver(ctx context.Context, key []byte) error {
	return s.withTimeout(ctx, func(deadline context.Context) error {
		_, err := s.runScript(deadline, newOperation(algorithm.PauseOver, onKey(algorithm.PauseOver, key)))
		return err
	})
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

// runOnShards runs a script for charges. If it is proved that one server holds all of them, it runs
// the script once, and otherwise on all their shards at the same time, so that a shard that does
// not answer does not delay the others. It returns the failures of all shards, joined. If read is
// not nil, it reads the replies.
func (s *Store) runOnShards(
	ctx context.Context, charges []algorithm.Charge, newCall func([]algorithm.Charge) *scriptCall, read func(reply []any) error,
) error {
	deadline, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	parts := splitCharges(charges)
	if proof := s.router.proof(); len(parts) > 1 && proof.wanted() {
		call := newCall(charges)
		call.proof = proof
		switch err := s.runAndRead(deadline, call, read); {
		case err == nil:
			return nil
		case err != errUnproved:
			return toFailure(err, s.timeout)
		}
	}
	failed := s.sideBySide(len(parts), func(i int) error {
		return s.runAndRead(deadline, newCall(parts[i]), read)
	})
	for i, err := range failed {
		if err != nil {
			failed[i] = toFailure(err, s.timeout)
		}
	}
	return errors.Join(failed...)
}

// runAndRead runs a script, and reads its reply.
func (s *Store) runAndRead(ctx context.Context, c *scriptCall, read func(reply []any) error) error {
	reply, err := s.runScript(ctx, c)
	if err == nil && read != nil {
		err = read(reply)
	}
	return err
}

// runScript runs a single script on the shard of its keys, and returns its reply, which is a list.
func (s *Store) runScript(ctx context.Context, c *scriptCall) (reply []any, err error) {
	shard, err := s.router.shard(ctx, c.shardKey())
	if err != nil {
		return nil, err
	}
	if err := shard.runScript(ctx, c, nil); err != nil {
		return nil, err
	}
	return c.cmd.Slice()
}
