package main

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/accesslimit/accesslimit/bench/internal/harness"
	"github.com/accesslimit/accesslimit/bench/rivals"
)

// The ceiling of a workload is the speed at which a server runs our TokenBucket's script when it
// does nothing else. redis-benchmark sends the calls, as the library encodes them. Where it is
// not installed or cannot send them, a loop of this program does, with as many calls in flight.

func (b *bench) ceilingOf(w workload, keys harness.Keys) error {
	if b.ceilingScript == nil {
		var err error
		if b.ceilingScript, err = b.record(rivals.TokenBucket, w.limit, keys); err != nil {
			return err
		}
		rand.Shuffle(len(b.ceilingScript), func(i, j int) {
			b.ceilingScript[i], b.ceilingScript[j] = b.ceilingScript[j], b.ceilingScript[i]
		})
	}
	call, err := b.recordOne(rivals.TokenBucket, w.limit, keys.At(0))
	if err != nil {
		return err
	}
	if _, err := b.loadStates(rivals.TokenBucket, w.limit, keys.Len()); err != nil {
		return err
	}
	perSecond, err := harness.RedisBenchmark(b.server.Addrs()[0], call, keys.At(0), keys.Len(), b.ceilingCalls)
	b.ceilingBy = "redis-benchmark -c 8 -P 64"
	if errors.Is(err, harness.ErrNoBenchmark) || errors.Is(err, harness.ErrZeroBytes) {
		b.ceilingBy = fmt.Sprintf("a loop of this program, 8 connections x 64 calls (%v)", err)
		var took time.Duration
		took, err = harness.Replay(b.server.Addrs()[0], b.ceilingScript, b.ceilingCalls, 8, 64)
		perSecond = float64(b.ceilingCalls) / took.Seconds()
	}
	b.ceiling = append(b.ceiling, perSecond)
	return err
}

// recordOne returns the call that a rival sends for a subject.
func (b *bench) recordOne(rival string, limit rivals.Limit, subject string) ([]string, error) {
	calls, err := b.recordCalls(rival, limit, func(allow harness.AllowFunc) error { return callOnce(allow, subject) })
	if err != nil {
		return nil, err
	}
	return calls[len(calls)-1], nil
}

// record returns the calls that a rival sends for each key, encoded.
func (b *bench) record(rival string, limit rivals.Limit, keys harness.Keys) ([][]byte, error) {
	calls, err := b.recordCalls(rival, limit, func(allow harness.AllowFunc) error {
		return forEachKey(keys, func(subject string) error { return callOnce(allow, subject) })
	})
	if err != nil {
		return nil, err
	}
	encoded := make([][]byte, len(calls))
	for i, call := range calls {
		encoded[i] = harness.Encode(call)
	}
	return encoded, nil
}
