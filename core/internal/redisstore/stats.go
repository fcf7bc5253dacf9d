package redisstore

import (
	"errors"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/accesslimit/accesslimit/core/internal/histogram"
)

// tripCounts counts the round trips to Redis that decide calls.
type tripCounts struct {
	sent   atomic.Uint64 // round trips
	calls  atomic.Uint64 // calls
	merged atomic.Uint64 // calls that shared the script call of another
}

// count counts a round trip that ended with err, unless the breaker prevented it. If there were no
// earlier trips for the same calls, it also counts the calls and script calls that the trip
// carried.
func (t *tripCounts) count(err error, earlier, calls, scripts int) {
	if err == errBreakerOpen {
		return
	}
	t.sent.Add(1)
	if earlier > 0 {
		return
	}
	t.calls.Add(uint64(calls))
	if calls > scripts {
		t.merged.Add(uint64(calls - scripts))
	}
}

// Trips returns how many round trips were made so far to decide calls, how many calls they carried,
// and how many of those shared the script call of another that asked for the same.
func (s *Store) Trips() (trips, calls, merged uint64) {
	return s.trips.sent.Load(), s.trips.calls.Load(), s.trips.merged.Load()
}

// observe records how long a call that ended with err waited. It ignores calls that the breaker
// prevented, because Redis was not asked.
func (c *common) observe(hash uint64, took time.Duration, err error) {
	if err == nil || !errors.Is(err, errBreakerOpen) {
		c.times.Observe(hash, took)
	}
}

// Times returns how long calls waited so far.
func (s *Store) Times() histogram.Snapshot { return s.times.Snapshot() }

// Losses returns how often a server was found to have lost data.
func (s *Store) Losses() uint64 { return s.losses.Load() }

// ShardState is the state of a server's breaker.
type ShardState struct {
	Addr    string
	Breaker string // closed, open or half-open
	Opened  uint64 // how often
}

// Shards returns the servers that calls went to, in order of their addresses. A client of unknown
// type has none.
func (s *Store) Shards() (all []ShardState) {
	for _, shard := range s.router.all() {
		if b := shard.breaker; b != nil {
			all = append(all, ShardState{shard.addr, b.circuit.State().String(), b.opened.Load()})
		}
	}
	slices.SortFunc(all, func(a, b ShardState) int { return strings.Compare(a.Addr, b.Addr) })
	return all
}
