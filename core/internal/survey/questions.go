package survey

import (
	"context"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/accesslimit/accesslimit/core/internal/algorithm"
	"github.com/accesslimit/accesslimit/core/internal/failure"
	"github.com/accesslimit/accesslimit/core/internal/panics"
)

const (
	// Together is how many counters one script looks at, so that it does not delay calls.
	Together = 16
	// atOnce is how many of these scripts are under way at once.
	atOnce = 4
)

// Question is about one counter. Several rules may need its answer. A nil Question is not asked.
type Question struct {
	counter algorithm.Counter
	verdict algorithm.Verdict
}

// Key returns the key of the counter.
func (q *Question) Key() string { return string(q.counter.Key) }

// Answer returns the store's answer, or nil if there is none. Its Remaining is negative if more is in
// use than the limit lets through.
func (q *Question) Answer() *algorithm.Verdict {
	if q == nil || q.verdict.Err != nil {
		return nil
	}
	return &q.verdict
}

// Err returns why there is no answer, or nil.
func (q *Question) Err() error {
	if q == nil {
		return nil
	}
	return q.verdict.Err
}

// questionKey identifies a question. The key of a counter determines its algorithm and window.
type questionKey struct {
	key  string
	max  int64
	rate algorithm.Rate
	cost int64
}

// About returns the question about a counter, and adds it if it is new.
func (s *Survey) About(key string, limit *algorithm.Limit, cost int64) *Question {
	of := questionKey{key, limit.Max, limit.Rate, cost}
	q := s.questions[of]
	if q == nil {
		q = &Question{counter: algorithm.Counter{Key: []byte(key), Limit: limit, Cost: cost, ShowsDebt: true}}
		s.questions[of] = q
	}
	return q
}

// Ask asks the store, in several scripts at once. Counters of one subject are asked together,
// because they are on one server.
func (s *Survey) Ask(ctx context.Context) {
	byKey := func(a, b questionKey) int { return strings.Compare(a.key, b.key) }
	var all []*Question
	for _, key := range slices.SortedFunc(maps.Keys(s.questions), byKey) {
		all = append(all, s.questions[key])
	}
	parts := slices.Collect(slices.Chunk(all, Together))
	var next atomic.Int64
	var workers sync.WaitGroup
	for range min(atOnce, len(parts)) {
		workers.Go(panics.Guard(func() {
			for at := next.Add(1) - 1; at < int64(len(parts)); at = next.Add(1) - 1 {
				s.askPartSafely(ctx, parts[at])
			}
		}, s.parts.Log.Panicked))
	}
	workers.Wait()
}

// askPartSafely is askPart, but a panic is the error of all counters.
func (s *Survey) askPartSafely(ctx context.Context, part []*Question) {
	panics.Guard(func() { s.askPart(ctx, part) }, func(err error) {
		s.parts.Log.Panicked(err)
		for _, q := range part {
			q.verdict = algorithm.Verdict{Err: &failure.Error{Class: failure.Unexpected, Err: err}}
		}
	})()
}

// askPart asks the store for some counters together, or one by one if it cannot read one of them.
func (s *Survey) askPart(ctx context.Context, part []*Question) {
	op := algorithm.NewOp(algorithm.Looks)
	for _, q := range part {
		op.Counters = append(op.Counters, q.counter)
	}
	op.Verdicts = make([]algorithm.Verdict, len(part))
	s.askStore(ctx, op)
	for i, q := range part {
		if q.verdict = op.Verdicts[i]; q.verdict.Ended != nil {
			q.verdict = algorithm.Verdict{Err: failure.NoAnswer(failure.Timeout, s.parts.Timeout, q.verdict.Ended)}
		}
	}
	if len(part) > 1 && slices.ContainsFunc(op.Verdicts, func(v algorithm.Verdict) bool { return failure.ClassOf(v.Err) == failure.Foreign }) {
		for i := range part {
			s.askPart(ctx, part[i:i+1])
		}
	}
}

// askStore asks the store when it is the turn of a report.
func (s *Survey) askStore(ctx context.Context, op *algorithm.Op) {
	if s.parts.Redis != nil {
		defer s.parts.Redis.Turn(ctx)()
	}
	s.parts.Store.Do(ctx, op)
}

// FindTime returns the time of the latest answer, or 0 if there is none and the store is not this
// process.
func (s *Survey) FindTime() (now int64) {
	for _, q := range s.questions {
		if v := q.Answer(); v != nil {
			now = max(now, v.At)
		}
	}
	if now == 0 && s.parts.Memory != nil {
		now = s.parts.Memory.Now()
	}
	return now
}

// SetTime sets the current time, in microseconds since the epoch.
func (s *Survey) SetTime(now int64) { s.now = now }
