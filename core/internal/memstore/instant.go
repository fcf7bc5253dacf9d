package memstore

import "github.com/accesslimit/accesslimit/core/internal/algorithm"

// instant is the time of a decision by two clocks, in microseconds.
type instant struct {
	now int64 // since the epoch; it may step back, and jumps ahead after a suspension
	// awake never steps. It determines when an entry equals a fresh one: by the other time, an
	// entry that was charged before the clock stepped back by a year would stay for a year.
	awake int64
}

// of returns the time that a limit counts by. Slots are held by calls of this very process, which
// were suspended with it and have had no time to renew them.
func (t instant) of(l *algorithm.Limit) int64 {
	if l.Properties().Slots {
		return t.awake
	}
	return t.now
}

// arrival reads this process's own clock, before a lock is taken: a caller that has the lock does
// not keep others waiting for the clock.
func (s *Store) arrival() (awake int64) {
	if s.clock != nil {
		return 0
	}
	return s.own.Awake() / 1000
}

func (s *Store) sinceEpoch(awake int64) int64 { return awake + s.own.Ahead() }

// timeIn returns the time of a decision in a locked shard. If another call has used a later time
// under the lock since this call arrived, it returns that time. At an earlier time than its own, a
// state would find that the clock stepped back. A clock that a test sets is read under the lock,
// and may really step back.
func (s *Store) timeIn(shard *shard, arrived int64) instant {
	if s.clock != nil {
		now := s.clock()
		return instant{now, now}
	}
	shard.newest = max(shard.newest, arrived)
	return instant{s.sinceEpoch(shard.newest), shard.newest}
}

// latest returns the time of a decision in several locked shards. It is not before one that was
// used in any of them.
func (s *Store) latest(hashes []uint64, arrived int64) (t instant) {
	if s.clock != nil {
		return s.timeIn(nil, 0)
	}
	for range 2 { // first to find the latest, then to leave it in each
		for _, hash := range hashes {
			t = s.timeIn(s.shard(hash), arrived)
			arrived = t.awake
		}
	}
	return t
}
