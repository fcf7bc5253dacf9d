package redisstore

import (
	"context"
)

// Waiting returns how many calls wait in lanes for a pipeline, and whether every lane in use has a
// pipeline in flight.
func (s *Store) Waiting() (n int, allInFlight bool) {
	allInFlight = true
	shard, _ := s.router.shard(context.Background(), nil)
	shard.mu.Lock()
	defer shard.mu.Unlock()
	lanes := shard.lanes[:]
	if shard.joins.Load() {
		lanes = lanes[:2]
	}
	for i := range lanes {
		n += len(lanes[i].waiting)
		allInFlight = allInFlight && len(lanes[i].inFlight) > 0
	}
	return n, allInFlight
}

// NoListener ignores everything.
type NoListener = noListener

// Prove starts to test, for each single server known so far, whether it holds all keys. It reports
// whether that is proved for all of them.
func (s *Store) Prove() bool {
	all := true
	for _, shard := range s.router.all() {
		all = (shard.proof == nil || shard.proof.wanted()) && all
	}
	return all
}

// OnTheirWay returns how many calls have been sent by themselves, and how many in pipelines.
func (s *Store) OnTheirWay() (direct, inFlight int) {
	shard, _ := s.router.shard(context.Background(), nil)
	shard.mu.Lock()
	defer shard.mu.Unlock()
	for i := range shard.lanes {
		inFlight += len(shard.lanes[i].inFlight)
	}
	return len(shard.direct), inFlight
}
