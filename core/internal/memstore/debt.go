package memstore

import "github.com/accesslimit/accesslimit/core/internal/algorithm"

// chargeTogether charges the counters of an op in debt.
func (s *Store) chargeTogether(op *algorithm.Op) {
	arrived := s.arrival()
	hashes := s.appendHashes(nil, op.Counters)
	shards := s.lockAll(nil, hashes)
	defer s.unlockAll(shards)
	t := s.latest(hashes, arrived)
	own := func(n *name) bool { return n.isAny(op.Counters) }
	for i := range op.Counters {
		s.chargeInDebt(&op.Counters[i], hashes[i], t, op.Share, &op.Verdicts[i], own)
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
