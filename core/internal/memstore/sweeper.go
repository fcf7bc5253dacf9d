package memstore

import (
	"math"
	"sync"
	"sync/atomic"
	"time"
)

// sweepEvery is how often entries as good as fresh are looked for.
const sweepEvery = time.Second

// sweep drops every entry that is as good as fresh, a few under one lock, and says whether any are left.
func (s *Store) sweep() (left bool) {
	for i := range s.shards {
		for next := math.MaxInt; next > 0; {
			next = s.sweepSome(&s.shards[i], next)
		}
	}
	return s.keys.Load() > 0
}

func (s *Store) sweepSome(shard *shard, before int) (next int) {
	early := s.early()
	s.lock(shard)
	defer shard.mu.Unlock()
	next, dropped := shard.dropFresh(before, s.at(shard, early).awake)
	s.keys.Add(-int64(dropped))
	return next
}

// sweeper runs a sweep every now and then while there is anything to sweep, without a goroutine in between.
type sweeper struct {
	sweep  func() (left bool)
	active atomic.Bool
	mu     sync.Mutex
	timer  *time.Timer
	closed bool
}

// start sees to it that a sweep comes.
func (s *sweeper) start() {
	if s.active.CompareAndSwap(false, true) {
		s.schedule()
	}
}

func (s *sweeper) schedule() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.closed {
		s.timer = time.AfterFunc(sweepEvery, s.run)
	}
}

func (s *sweeper) run() {
	s.active.Store(false)
	if s.sweep() {
		s.start()
	}
}

func (s *sweeper) stop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	if s.timer != nil {
		s.timer.Stop()
	}
}
