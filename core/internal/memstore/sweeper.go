package memstore

import (
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/accesslimit/accesslimit/core/internal/panics"
)

// sweepEvery is how often a sweep looks for entries that equal fresh ones.
const sweepEvery = time.Second

// Sweep removes every entry that equals a fresh one, a few at a time under one lock, and reports
// whether any entries are left.
func (s *Store) Sweep() (left bool) {
	for i := range s.shards {
		for next := math.MaxInt; next > 0; {
			next = s.sweepSome(&s.shards[i], next)
		}
	}
	s.tails.renew()
	return s.keys.Load() > 0
}

func (s *Store) sweepSome(shard *shard, before int) (next int) {
	arrived := s.arrival()
	s.lock(shard)
	defer shard.mu.Unlock()
	next, dropped := shard.dropFresh(before, s.timeIn(shard, arrived).awake)
	s.keys.Add(-int64(dropped))
	return next
}

// sweeper sweeps regularly while there are entries. Between sweeps it has a timer and no goroutine.
type sweeper struct {
	sweep  func() (left bool)
	failed func(err error) // reports a panic
	active atomic.Bool
	mu     sync.Mutex
	timer  *time.Timer
	closed bool
}

// start makes sure that a sweep will run.
func (s *sweeper) start() {
	if s.active.CompareAndSwap(false, true) {
		s.schedule()
	}
}

func (s *sweeper) schedule() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.closed {
		s.timer = time.AfterFunc(sweepEvery, panics.Guard(s.run, s.failed))
	}
}

func (s *sweeper) run() {
	s.active.Store(false)
	left := true // also after a panic
	defer func() {
		if left {
			s.start()
		}
	}()
	left = s.sweep()
}

func (s *sweeper) stop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	if s.timer != nil {
		s.timer.Stop()
	}
}
