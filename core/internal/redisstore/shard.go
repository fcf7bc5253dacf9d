package redisstore

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// shard is one server, with the two ways in which calls reach it.
//
// If few other calls are in flight, a call is sent directly, in its own goroutine. If many are,
// calls go through lanes: those that arrive while a lane's pipeline is in flight wait together, and
// leave as its next pipeline. A call for the same keys as a direct one waits in its lane too, so
// that the calls for a hot key meet there and are merged.
//
// AutoPipeline, the pipeliner that go-redis has since 9.23, cannot take the place of the lanes: it sends a
// script for each call, where lanes merge equal calls and decide calls on different keys in one script. With
// 256 goroutines, a bare script on it makes 0.25 of the decisions on one key, and 0.8 to 1 of those on 100,000
// keys. For a caller alone, it takes 1.3 to 1.5 times as long as EvalSha (make bench).
//
// A pipeline runs under Timeout, never under a caller's context. Each caller waits under their own
// context. If a caller leaves before the pipeline does, their call is not sent.
type shard struct {
	*common
	node      node
	pipelines pipelineNode // the node, or nil if it cannot pipeline, so that all calls are direct
	redirects redirectNode // the node, or nil if no slots move
	addr      string
	breaker   *breaker        // nil if it may be several servers
	server    *serverWatch    // nil if it may be several servers
	proof     *oneServerProof // nil if it is a master of a cluster, or may be several servers
	joins     atomic.Bool     // one script can decide calls on different keys, as of the last check
	manySize  manySize
	maxDirect int // the number of direct calls while joins is false
	start     time.Time

	mu        sync.Mutex
	direct    []uint64 // the hashes of the direct calls in flight
	pairs     uint     // how often a call was sent directly beside another
	lanes     [laneCount]lane
	crowded   atomic.Bool // while joins is true: there are enough calls for two lanes
	timer     *time.Timer // ends the calls in the lanes whose time is up
	timerRuns bool
	freeCalls sync.Pool // of *laneCall
}

// mostDirect is the largest number of calls that are sent directly at the same time while each
// script has the keys of one call. A client with few connections keeps some for the lanes, and so
// sends fewer calls directly. With 4 goroutines, a direct call is as fast as go-redis's bare
// EvalSha. With 16 goroutines, the lanes are 1.2 times as fast as EvalSha if they are used from the
// fifth call on, and 0.9 times as fast if they are used from the seventeenth on.
//
// If one script can decide calls on different keys, only one call is sent directly. Compared with
// four, that is 1.1 times as fast with 2 goroutines, 1.7 times with 4, and twice as fast with 8.
const mostDirect = 4

// checkEvery is how often the shard checks whether one script can decide calls on different keys:
// once in this many calls that are sent directly beside another one.
const checkEvery = 64

func newShard(n node, connections int, c *common) *shard {
	s := &shard{common: c, node: n, maxDirect: max(1, min(connections-laneCount, mostDirect)), start: time.Now()}
	s.pipelines, _ = n.(pipelineNode)
	s.redirects, _ = n.(redirectNode)
	s.freeCalls.New = func() any { return &laneCall{done: make(chan struct{}, 1)} }
	return s
}

// beginDirect reports whether a call may be sent directly. If so, endDirect must follow.
func (s *shard) beginDirect(hash uint64) bool {
	switch {
	case s.pipelines == nil:
		return true
	case s.lane(hash).served.Load(): // nearly always, when there are many calls
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.lane(hash).served.Load() {
		return false
	}
	full := s.isDirectFull()
	s.recheckJoins()
	if full || slices.Contains(s.direct, hash) {
		return false
	}
	s.direct = append(s.direct, hash)
	return true
}

// isDirectFull reports whether no further call can be sent directly. The shard must be locked.
func (s *shard) isDirectFull() bool {
	n := len(s.direct)
	return n > 0 && (s.joins.Load() || n == s.maxDirect)
}

// recheckJoins checks, once in checkEvery direct calls beside another one, whether one script can now
// decide calls on different keys. The shard must be locked.
func (s *shard) recheckJoins() {
	if len(s.direct) == 0 || s.joins.Load() {
		return
	}
	if s.pairs++; s.pairs%checkEvery == 0 {
		s.joins.Store(s.proof.wanted())
	}
}

func (s *shard) endDirect(hash uint64) {
	if s.pipelines == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	i, last := slices.Index(s.direct, hash), len(s.direct)-1
	s.direct[i] = s.direct[last]
	s.direct = s.direct[:last]
}

// process sends a command. If refusal is a server's refusal of the command, it is sent where the
// slot is now.
func (s *shard) process(ctx context.Context, cmd command, refusal error) error {
	if refusal != nil && s.hasMovingSlots() {
		return s.redirects.redirect(ctx, cmd, refusal)
	}
	return s.node.process(ctx, cmd)
}

// mustFollowSlot reports whether a call that ended with this error in a pipeline must be sent again
// on its own, because its slot is moving.
func (s *shard) mustFollowSlot(err error) bool {
	return err != nil && (isSlotSplit(err) || isSlotUnavailable(err) && s.hasMovingSlots())
}

// hasMovingSlots reports whether the shard's slots may move to another.
func (s *shard) hasMovingSlots() bool { return s.redirects != nil }
