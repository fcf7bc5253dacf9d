// Package memstore keeps counters in this process.
//
// The table is cut into shards, each a map from key to a place in a slice of entries. It holds at most so many entries:
// when it is full, a new key takes the place of one that nobody asked for again (the clock algorithm, or second chance), so
// a flood of new keys evicts its own and not the busy ones. An entry whose counter is as good as fresh goes away by
// itself, a shard at a time, never all at once.
package memstore

import (
	"context"
	"hash/maphash"
	"sync"
	"sync/atomic"
	"time"

	"github.com/accesslimit/accesslimit/core/internal/algorithm"
)

// shardCount is how many shards a table of usual size has; one that is to hold less than 64 entries a shard has one.
const shardCount = 64

// sweepEvery is how often entries as good as fresh are looked for.
const sweepEvery = time.Second

// Store is the table. It is safe for concurrent use.
type Store struct {
	shards  []shard
	seed    maphash.Seed
	now     func() int64
	maxKeys int64
	keys    atomic.Int64
	sweeper sweeper
}

// New makes a table of at most maxKeys keys. The clock gives microseconds since the epoch; nil is this process's own,
// which never steps back.
func New(maxKeys int, clock func() int64) *Store {
	if clock == nil {
		clock = steadyClock()
	}
	count := shardCount
	if maxKeys < 64*shardCount {
		count = 1
	}
	s := &Store{shards: make([]shard, count), seed: maphash.MakeSeed(), now: clock, maxKeys: int64(maxKeys)}
	for i := range s.shards {
		s.shards[i].index = make(map[string]int)
	}
	s.sweeper.sweep = s.sweep
	return s
}

// steadyClock is the wall clock as it was when the process asked first, carried on by the monotonic one.
func steadyClock() func() int64 {
	start := time.Now()
	epoch := start.UnixMicro()
	return func() int64 { return epoch + time.Since(start).Microseconds() }
}

// Decide answers for one call's counters, charging all of them or none; verdicts is as long as counters.
func (s *Store) Decide(_ context.Context, counters []algorithm.Counter, charge bool, verdicts []algorithm.Verdict) {
	if len(counters) == 1 {
		s.decideOne(&counters[0], charge, &verdicts[0])
		return
	}
	s.lockAll(counters)
	defer s.unlockAll(counters)
	now := s.now()
	for i := range counters {
		verdicts[i] = s.shard(counters[i].Key).look(&counters[i], now, charge)
	}
	if !charge {
		return
	}
	passes := algorithm.Passes(counters, verdicts)
	for i := len(counters) - 1; i >= 0; i-- { // backwards, so that a ban which is struck does not strike one behind it
		switch c, v := &counters[i], &verdicts[i]; {
		case algorithm.Struck(counters, verdicts, i):
			s.strike(s.shard(c.Key), c, now, v)
		case passes && v.RetryAfter == 0:
			s.charge(s.shard(c.Key), c, now, v)
		}
	}
}

func (s *Store) decideOne(c *algorithm.Counter, charge bool, v *algorithm.Verdict) {
	shard := s.shard(c.Key)
	shard.mu.Lock()
	defer shard.mu.Unlock()
	now := s.now()
	*v = shard.look(c, now, charge)
	if v.RetryAfter == 0 && charge {
		s.charge(shard, c, now, v)
	}
}

// charge takes a cost that fits, making room for the key when it is new.
func (s *Store) charge(shard *shard, c *algorithm.Counter, now int64, v *algorithm.Verdict) {
	if c.Cost == 0 || c.Limit.Kind == algorithm.Ban {
		return
	}
	e := s.entry(shard, c.Key, now)
	c.Limit.Charge(&e.state, now, c.Cost, c.Mark, v)
	e.freshAt = now + v.ResetAfter
}

// strike tells a ban of a refusal, which may be the one too many.
func (s *Store) strike(shard *shard, c *algorithm.Counter, now int64, v *algorithm.Verdict) {
	e := s.entry(shard, c.Key, now)
	if reset, noted := c.Limit.Strike(&e.state, now); noted {
		e.freshAt = now + reset
	}
	v.RetryAfter = max(0, e.state.Used-now)
}

// entry is that of a key, made when it is new. It is valid while the shard is locked, until the next is asked for.
func (s *Store) entry(shard *shard, key []byte, now int64) *entry {
	at, known := shard.index[string(key)]
	if !known {
		at = s.place(shard, string(key), now)
	}
	return &shard.entries[at]
}

// place finds room for a new key: a place of its own, or in a full table that of an entry which can go. One place is kept
// back for each other shard, because an empty shard has no entry that can go.
func (s *Store) place(own *shard, key string, now int64) (at int) {
	if s.keys.Add(1) > s.maxKeys-int64(len(s.shards)-1) && len(own.entries) > 0 {
		s.keys.Add(-1)
		return own.replace(key, now)
	}
	s.sweeper.start()
	return own.add(key)
}

// Close stops the sweeping. Counting goes on.
func (s *Store) Close() { s.sweeper.stop() }

// Len is how many keys the table holds now.
func (s *Store) Len() int { return int(s.keys.Load()) }

// sweep drops every entry that is as good as fresh, locking one shard at a time, and says whether any are left.
func (s *Store) sweep() (left bool) {
	for i := range s.shards {
		shard := &s.shards[i]
		shard.mu.Lock()
		s.keys.Add(-int64(shard.dropFresh(s.now())))
		shard.mu.Unlock()
	}
	return s.keys.Load() > 0
}

func (s *Store) shard(key []byte) *shard { return &s.shards[s.shardOf(key)] }

func (s *Store) shardOf(key []byte) int {
	return int(maphash.Bytes(s.seed, key) % uint64(len(s.shards)))
}

// lockAll locks every shard that the counters lie in, each once and in order, so that two calls never wait for each other.
func (s *Store) lockAll(counters []algorithm.Counter) {
	s.eachShard(counters, func(shard *shard) { shard.mu.Lock() })
}

func (s *Store) unlockAll(counters []algorithm.Counter) {
	s.eachShard(counters, func(shard *shard) { shard.mu.Unlock() })
}

func (s *Store) eachShard(counters []algorithm.Counter, do func(*shard)) {
	var touched [shardCount]bool
	for i := range counters {
		touched[s.shardOf(counters[i].Key)] = true
	}
	for i := range s.shards {
		if touched[i] {
			do(&s.shards[i])
		}
	}
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
