package memstore

import "github.com/accesslimit/accesslimit/core/internal/algorithm"

// open decides a call and, if it passes, records a bill.
func (s *Store) open(op *algorithm.Op) {
	counters, b := op.Counters, op.Bill
	c := s.lockBill(counters, b.Key)
	defer s.unlockAll(c.shards)
	s.decideLocked(counters, c.hashes[:len(counters)], true, c.t, op.Verdicts)
	if algorithm.Fits(op.Verdicts) {
		hash := c.hashes[len(counters)]
		e := s.entry(s.shard(hash), b.Key, hash, c.t, c.own)
		e.state, e.freshAt = b.New(c.t.now, len(counters), counters[0].Cost), c.t.awake+b.Span
	}
}

// changeBill adds to a bill, or settles it.
func (s *Store) changeBill(b *algorithm.Bill, to algorithm.BillChange) (a algorithm.BillAnswer) {
	c := s.lockBill(b.Counters(), b.Key)
	defer s.unlockAll(c.shards)
	hash := c.hashes[len(b.Charges)]
	e, state := s.shard(hash).lookUp(b.Key, tag(hash))
	if e == nil {
		return a
	}
	c.share, c.of = b.Share, s
	bill := *state // charging may move the entry
	a = b.Change(&bill, to, c.t.now, c)
	if e, _ := s.shard(hash).lookUp(b.Key, tag(hash)); e != nil && to.Settle {
		e.freshAt = min(e.freshAt, c.t.awake+algorithm.SettledLife)
	}
	return a
}

// billCall holds the counters of a bill while their shards, and that of the bill, are locked.
type billCall struct {
	of       *Store
	counters []algorithm.Counter
	hashes   []uint64 // of the counters, then of the bill
	shards   []int
	t        instant
	share    float64
	own      callKeys
}

// lockBill locks the shards of counters and of a bill.
func (s *Store) lockBill(counters []algorithm.Counter, key []byte) *billCall {
	arrived := s.arrival()
	c := &billCall{counters: counters, hashes: append(s.appendHashes(nil, counters), s.hash(key))}
	c.shards = s.lockAll(nil, c.hashes)
	c.t = s.latest(c.hashes, arrived)
	c.own = func(n *name) bool { return n.is(key) || n.isAny(counters) }
	return c
}

// Charge implements algorithm.BillCounters.
func (c *billCall) Charge(i int, cost int64) (v algorithm.Verdict) {
	c.counters[i].Cost = cost
	c.of.chargeInDebt(&c.counters[i], c.hashes[i], c.t, c.share, &v, c.own)
	return v
}

// GiveBack implements algorithm.BillCounters.
func (c *billCall) GiveBack(i int, charge *algorithm.Charge) (lost int64) {
	if e := c.of.shard(c.hashes[i]).find(charge.Key, tag(c.hashes[i])); e != nil {
		lost = e.giveBack(charge, c.t)
	}
	return lost
}
