package redisstore

import (
	"context"
	"slices"

	"github.com/accesslimit/accesslimit/core/internal/algorithm"
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

// Reply is the reply to a script call for so many equal calls, to be read for one that has some of
// the others ahead of it.
type Reply struct {
	Counters     []algorithm.Counter
	Calls, Ahead int64
	Text         string
	Texts        []string
	Values       []any
}

// Fast reads the reply of a fast script.
func (r Reply) Fast(verdicts []algorithm.Verdict) (passed int64, err error) {
	return r.read(fastKind, verdicts)
}

// Many reads the reply of decide_many.lua for the counters of one call.
func (r Reply) Many(verdicts []algorithm.Verdict) (passed int64, err error) {
	return r.read(manyKind, verdicts)
}

// Equal reads the reply of decide_equal.lua.
func (r Reply) Equal(verdicts []algorithm.Verdict) (passed int64, err error) {
	return r.read(equalKind, verdicts)
}

// Decided reads the reply of decide.lua.
func (r Reply) Decided(verdicts []algorithm.Verdict) (passed int64, err error) {
	return r.read(decideKind, verdicts)
}

func (r Reply) read(by scriptKind, verdicts []algorithm.Verdict) (passed int64, err error) {
	a := scriptReply{kind: by, text: r.Text, texts: r.Texts, values: r.Values, calls: r.Calls}
	return a.readVerdicts(&request{counters: r.Counters, calls: 1}, r.Ahead, verdicts, new(scratch), new(common))
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

// IsProved reports whether each single server known so far is proved to hold all keys.
func (s *Store) IsProved() bool {
	return !slices.ContainsFunc(s.router.all(), func(shard *shard) bool { return shard.proof != nil && !shard.proof.holds() })
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
