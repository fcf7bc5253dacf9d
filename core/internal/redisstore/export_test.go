package redisstore

import "context"

// Waiting is how many calls wait in lanes for a pipeline, and whether every lane has one on its way.
func (s *Store) Waiting() (n int, allFly bool) {
	allFly = true
	shard, _ := s.router.shard(context.Background(), nil)
	shard.mu.Lock()
	defer shard.mu.Unlock()
	for i := range shard.lanes {
		n += len(shard.lanes[i].waiting)
		allFly = allFly && len(shard.lanes[i].flying) > 0
	}
	return n, allFly
}
