// Package memstore keeps counters in this process.
//
// The keys are spread over shards of several hundred, each a table of its own under a lock of its own, so that whatever a table
// does at once (growing, shrinking, looking for an entry that can go) takes microseconds. The store holds at most so many
// entries: when it is full, a new key takes the place of one that nobody asked for again (the clock algorithm, or second chance),
// so a flood of new keys evicts its own and not the busy ones. An entry whose counter is as good as fresh goes away by
// itself, a few at a time under one lock.
//
// Tried instead, and measured side by side with the same arithmetic, clock and keys: the cache library otter v2, with a bucket
// and its mutex as the value, took 2.6 times as long on one hot key, 2.3 times with 100,000 keys, and longer for keys that
// are new; it kept 171 bytes a key of 14 bytes, where this keeps 106 of one of 48, evicts in the background, and so may forget a
// bucket that a caller is just charging. A Go map with a slice of entries, as it was here before, took 180 bytes beside the
// key, 1.9 times as long on a hot key and twice with 100,000. A spin lock in place of the mutex, and a spin before it, made a hot
// key slower: to hand over the cache line costs more than to decide, and a mutex lets who holds it go on. bench/tables shows the
// whole limiter beside them.
package memstore

import (
	"context"
	"hash/maphash"
	"slices"
	"sync/atomic"

	"github.com/accesslimit/accesslimit/core/internal/algorithm"
	"github.com/accesslimit/accesslimit/core/internal/clock"
)

const (
	shardKeys = 512     // how many keys a shard holds when the store is full, or up to twice as many
	maxShards = 1 << 14 // from 16 million keys on, shards get larger
)

// Store is the table. It is safe for concurrent use.
type Store struct {
	shards  []shard
	cells   cells
	seed    maphash.Seed
	clock   func() int64 // nil: this process's own
	own     clock.Clock
	maxKeys int64
	keys    atomic.Int64
	sweeper sweeper
}

// New returns a table of at most maxKeys keys, or as many as one call needs, if that is more. The
// clock returns microseconds since the epoch; nil means this process's own [clock.Clock].
func New(maxKeys int, clock func() int64) *Store {
	count := 1
	for count < maxShards && 2*count <= maxKeys/shardKeys {
		count *= 2
	}
	s := &Store{shards: make([]shard, count), seed: maphash.MakeSeed(), clock: clock, maxKeys: int64(maxKeys)}
	s.own.Start()
	for i := range s.shards {
		s.shards[i].seed, s.shards[i].blank = s.seed, new(algorithm.State)
	}
	s.sweeper.sweep = s.sweep
	return s
}

// instant is the time of a decision, in microseconds.
type instant struct {
	now int64 // since the epoch; it may step back, and jumps ahead after a suspension
	// awake never steps. It says when an entry is as good as fresh: otherwise one that was charged before the clock stepped back by
	// a year would stay for a year.
	awake int64
}

// of returns the time that a limit counts by. Slots are held by calls of this very process, which were suspended with it and
// have had no time to renew them.
func (t instant) of(l *algorithm.Limit) int64 {
	if l.Kind == algorithm.Concurrency {
		return t.awake
	}
	return t.now
}

// early reads this process's own clock before a lock is taken: a caller that waits for the lock need not wait for the clock.
func (s *Store) early() (awake int64) {
	if s.clock != nil {
		return 0
	}
	return s.own.Awake() / 1000
}

func (s *Store) sinceEpoch(awake int64) int64 { return awake + s.own.Ahead() }

// at is the time of a decision in a shard that is locked. A time read early may lie before one that was used under the lock since:
// it counts as that one, for a state takes a time before its own for a clock that stepped back. Another clock is read under
// the lock, and really may step back.
func (s *Store) at(shard *shard, early int64) instant {
	if s.clock != nil {
		now := s.clock()
		return instant{now, now}
	}
	shard.newest = max(shard.newest, early)
	return instant{s.sinceEpoch(shard.newest), shard.newest}
}

// Decide answers for one call's counters, charging all of them or none; verdicts is as long as counters.
func (s *Store) Decide(_ context.Context, counters []algorithm.Counter, charge bool, verdicts []algorithm.Verdict) {
	early := s.early()
	if len(counters) == 1 {
		s.decideOne(&counters[0], charge, early, &verdicts[0])
		return
	}
	var roomForHashes [16]uint64
	var roomForShards [16]int
	hashes := roomForHashes[:0]
	for i := range counters {
		hashes = append(hashes, s.hash(counters[i].Key))
	}
	shards := s.appendShards(roomForShards[:0], hashes)
	for _, at := range shards {
		s.lock(&s.shards[at])
	}
	defer func() {
		for _, at := range shards {
			s.shards[at].mu.Unlock()
		}
	}()
	s.decideLocked(counters, hashes, charge, s.latest(hashes, early), verdicts)
}

// decideOne is for the most frequent call, which is about one counter.
func (s *Store) decideOne(c *algorithm.Counter, charge bool, early int64, v *algorithm.Verdict) {
	hash := s.hash(c.Key)
	if charge && s.chargeCell(c, hash, early, v) {
		return
	}
	shard := s.shard(hash)
	waited := s.lock(shard)
	defer shard.mu.Unlock()
	t := s.at(shard, early)
	e, state := shard.look(c.Key, tag(hash))
	if !charge {
		c.Limit.Look(state, t.of(c.Limit), c.Cost, false, v)
		return
	}
	if !c.Limit.Decide(state, t.of(c.Limit), c.Cost, c.Mark, v) {
		if e != nil {
			e.stay(t.awake + v.ResetAfter)
		}
		return
	}
	if e == nil {
		e = s.place(shard, c.Key, hash, t, nil)
		e.state = *state
	}
	e.setFresh(t.awake + c.Limit.Lives(&e.state, t.now, v))
	if waited {
		s.openCell(shard, e, c.Limit, hash, t)
	}
}

// decideLocked decides over counters whose shards are locked.
func (s *Store) decideLocked(counters []algorithm.Counter, hashes []uint64, charge bool, t instant, verdicts []algorithm.Verdict) {
	for i := range counters {
		c := &counters[i]
		e, state := s.shard(hashes[i]).look(c.Key, tag(hashes[i]))
		c.Limit.Look(state, t.of(c.Limit), c.Cost, charge, &verdicts[i])
		if charge && e != nil {
			e.stay(t.awake + verdicts[i].ResetAfter)
		}
	}
	if !charge {
		return
	}
	passes := algorithm.Passes(counters, verdicts)
	own := func(key string) bool {
		return slices.ContainsFunc(counters, func(c algorithm.Counter) bool { return string(c.Key) == key })
	}
	for i := range counters {
		switch c, v := &counters[i], &verdicts[i]; {
		case c.Limit.Kind == algorithm.Ban:
			if algorithm.Struck(counters, verdicts, i) {
				s.strike(c, hashes[i], t, v, own)
			}
		case passes && v.RetryAfter == 0 && c.Cost > 0:
			s.charge(c, hashes[i], t, v, own)
		}
	}
}

// charge takes a cost that fits, making room for the key when it is new.
func (s *Store) charge(c *algorithm.Counter, hash uint64, t instant, v *algorithm.Verdict, own ownKeys) {
	e := s.entry(s.shard(hash), c.Key, hash, t, own)
	c.Limit.Charge(&e.state, t.of(c.Limit), c.Cost, c.Mark, v)
	e.setFresh(t.awake + c.Limit.Lives(&e.state, t.now, v))
}

// strike tells a ban of a refusal, which may be the one too many.
func (s *Store) strike(c *algorithm.Counter, hash uint64, t instant, v *algorithm.Verdict, own ownKeys) {
	e := s.entry(s.shard(hash), c.Key, hash, t, own)
	if reset, noted := c.Limit.Strike(&e.state, t.now); noted {
		e.setFresh(t.awake + reset)
		v.Position = 1
	}
	v.RetryAfter = max(0, e.state.Used-t.now)
}

// ownKeys reports whether a key belongs to the call that is being decided. Such an entry is not
// evicted for another key of the call; otherwise a call with more counters than the table may hold
// would never find its own. nil stands for a call with one key.
type ownKeys func(key string) bool

// entry returns the entry of a key, made if it is new. It is valid while the shard is locked, until the next is asked for.
func (s *Store) entry(shard *shard, key []byte, hash uint64, t instant, own ownKeys) *entry {
	if e := shard.find(key, tag(hash)); e != nil {
		return e
	}
	return s.place(shard, key, hash, t, own)
}

// place makes an entry for a new key: beside the others, or in a full store in the place of one that can go. If all entries
// of the shard are the call's own, there is one more than the store should hold.
func (s *Store) place(shard *shard, key []byte, hash uint64, t instant, own ownKeys) *entry {
	if !s.oneMore(shard) {
		if place := shard.victim(t.awake, own); place >= 0 {
			return shard.replace(place, string(key), tag(hash), t.awake)
		}
		s.keys.Add(1)
	}
	s.sweeper.start()
	return shard.add(string(key), tag(hash))
}

// oneMore counts a new key, if there may be one more. One place is kept back for each other shard, because an empty shard has no
// entry that can go.
func (s *Store) oneMore(shard *shard) bool {
	most := s.maxKeys - int64(len(s.shards)-1)
	switch {
	case len(shard.entries) == 0:
		s.keys.Add(1)
		return true
	case len(shard.entries) == maxEntries || s.keys.Load() >= most:
		return false
	case s.keys.Add(1) > most:
		s.keys.Add(-1)
		return false
	}
	return true
}

// Close stops the sweeping. Counting goes on.
func (s *Store) Close() { s.sweeper.stop() }

// Len is how many keys the table holds now.
func (s *Store) Len() int { return int(s.keys.Load()) }

func (s *Store) hash(key []byte) uint64 { return maphash.Bytes(s.seed, key) }

func (s *Store) shardOf(hash uint64) int { return int(hash & uint64(len(s.shards)-1)) }

func (s *Store) shard(hash uint64) *shard { return &s.shards[s.shardOf(hash)] }

// appendShards appends the places of the shards that the hashes lie in, each once and in order. Two
// calls that lock shards in this order never wait for each other.
func (s *Store) appendShards(places []int, hashes []uint64) []int {
	for _, hash := range hashes {
		places = append(places, s.shardOf(hash))
	}
	slices.Sort(places)
	return slices.Compact(places)
}

// latest is the time of a decision in several shards that are locked: it is not before one that was used in any.
func (s *Store) latest(hashes []uint64, early int64) instant {
	if s.clock != nil {
		return s.at(nil, 0)
	}
	awake := early
	for _, hash := range hashes {
		awake = max(awake, s.shard(hash).newest)
	}
	for _, hash := range hashes {
		s.shard(hash).newest = awake
	}
	return instant{s.sinceEpoch(awake), awake}
}
