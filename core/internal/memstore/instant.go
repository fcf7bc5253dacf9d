package memstore

import "github.com/accesslimit/accesslimit/core/internal/algorithm"

// instant is the time of a decision by two clocks, in microseconds.
type instant struct {
	now int64 // since the epoch; it may step back, and jumps ahead after a suspension
	// awake never steps. It determines when an entry equals a fresh one. By now, an entry that was
	// charged before the clock stepped back by a year would stay for a year. Entries of calendar
	// windows stay for longer, if the clock steps back within the window: see setBack.
	awake int64
}

// of returns the time by which a limit counts. For slots that is awake, because they are held by
// calls of this process, which were suspended with it and had no time to renew them.
func (t instant) of(l *algorithm.Limit) int64 {
	if l.Properties().Slots {
		return t.awake
	}
	return t.now
}

// arrival reads this process's own clock. It is called before a lock is taken, so that others do
// not wait for the clock too.
func (s *Store) arrival() (awake int64) {
	if s.clock != nil {
		return 0
	}
	return s.own.Awake() / 1000
}

func (s *Store) sinceEpoch(awake int64) int64 { return awake + s.own.Ahead() }

// timeIn returns the time of a decision in a locked shard. If another call has used a later time
// under the lock since this call arrived, it returns that later time. With an earlier one, a state
// would seem to meet a clock that has stepped back. A clock that a test sets is read under the lock, and
// may really step back.
func (s *Store) timeIn(shard *shard, arrived int64) instant {
	if s.clock != nil {
		now := s.clock()
		return instant{now, now}
	}
	shard.newest = max(shard.newest, arrived)
	if ahead := s.own.Ahead(); ahead != shard.ahead {
		if ahead < shard.ahead {
			shard.setBack(ahead)
		}
		shard.ahead = ahead
	}
	return instant{shard.newest + shard.ahead, shard.newest}
}

// latest returns the time of a decision in several locked shards. It is not earlier than any time
// that was used in one of them.
func (s *Store) latest(hashes []uint64, arrived int64) (t instant) {
	if s.clock != nil {
		return s.timeIn(nil, 0)
	}
	for range 2 { // first to find the latest time, then to store it in each shard
		for _, hash := range hashes {
			t = s.timeIn(s.shard(hash), arrived)
			arrived = t.awake
		}
	}
	return t
}
