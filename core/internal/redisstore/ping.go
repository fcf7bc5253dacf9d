package redisstore

import (
	"cmp"
	"context"
	"fmt"

	"github.com/accesslimit/accesslimit/core/internal/algorithm"
)

// pingKeys is how many keys Ping tries to find one on each server. They miss a master that has a
// hundredth of a cluster's slots in about one of 30,000 cases.
const pingKeys = 1024

// Ping charges a call on each server, because a server that is full answers everything else. The
// counters, whose keys begin with keyHead, last a second. The error is the context's own if that
// has ended, and otherwise the *failure.Error of a server that did not charge.
func (s *Store) Ping(ctx context.Context, keyHead string) error {
	limit := algorithm.Probing()
	return s.withTimeout(ctx, func(deadline context.Context) error {
		counters, shards, err := s.eachShard(deadline, func(i int) algorithm.Counter {
			return algorithm.Counter{Key: fmt.Appendf(nil, "%s%%ping%d}:%s", keyHead, i, limit.Span()), Limit: &limit, Cost: 1}
		})
		if err != nil {
			return err
		}
		return cmp.Or(s.sideBySide(len(shards), func(i int) error {
			_, err := s.callShard(deadline, s.newRequest(*algorithm.NewOp(algorithm.AllOrNone, counters[i])), make([]algorithm.Verdict, 1))
			if err == errBreakerOpen {
				err = shards[i].whyOpen()
			}
			return err
		})...)
	})
}

// eachShard returns a counter on each shard, of those that counter returns for the first numbers.
func (s *Store) eachShard(ctx context.Context, counter func(i int) algorithm.Counter) (counters []algorithm.Counter, shards []*shard, err error) {
	keys, seen := pingKeys, make(map[*shard]bool)
	if _, one := s.router.(singleShard); one {
		keys = 1
	}
	for i := range keys {
		c := counter(i)
		shard, err := s.router.shard(ctx, c.Key)
		if err != nil {
			return nil, nil, err
		}
		if !seen[shard] {
			seen[shard] = true
			counters, shards = append(counters, c), append(shards, shard)
		}
	}
	return counters, shards, nil
}

// whyOpen returns errBreakerOpen, with the reason why no connection can be set up if that is known.
func (s *shard) whyOpen() error {
	if of, ok := s.node.(interface{ cause() error }); ok && of.cause() != nil {
		return fmt.Errorf("%w: %w", errBreakerOpen, of.cause())
	}
	return errBreakerOpen
}

// cause returns why no connection to the server can be set up, as a probe found, or nil.
func (b boundClient) cause() error {
	if cause := b.connectivity.cause.Load(); cause != nil {
		return *cause
	}
	return nil
}
