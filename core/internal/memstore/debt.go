package memstore

import (
	"context"

	"github.com/accesslimit/accesslimit/core/internal/algorithm"
)

// Charge charges the counters whether their costs fit or not. share bounds the debt: see
// algorithm.Limit.Debt. No answer is ever lost here, so it needs no record.
func (s *Store) Charge(_ context.Context, counters []algorithm.Counter, share float64, _ []byte, verdicts []algorithm.Verdict) {
	arrived := s.arrival()
	hashes := s.appendHashes(nil, counters)
	shards := s.lockAll(nil, hashes)
	defer s.unlockAll(shards)
	t := s.latest(hashes, arrived)
	own := func(n *name) bool { return n.isAny(counters) }
	for i := range counters {
		s.chargeInDebt(&counters[i], hashes[i], t, share, &verdicts[i], own)
	}
}

// chargeInDebt charges a counter, whose shard must be locked.
func (s *Store) chargeInDebt(c *algorithm.Counter, hash uint64, t instant, share float64, v *algorithm.Verdict, own callKeys) {
	shard := s.shard(hash)
	e, state := shard.lookUp(c.Key, tag(hash))
	lives := c.Limit.ChargeInDebt(state, t.of(c.Limit), c.Cost, share, v)
	switch {
	case lives == 0 && e != nil:
		e.keep(t, v.ResetAfter)
	case lives > 0 && e == nil:
		e = s.create(shard, c.Key, hash, t, own)
		e.state = *state
	}
	if lives > 0 {
		e.freshAt = t.awake + lives
	}
}
