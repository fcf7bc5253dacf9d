package core

import (
	"context"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/accesslimit/accesslimit/core/internal/algorithm"
	"github.com/accesslimit/accesslimit/core/internal/failure"
	"github.com/accesslimit/accesslimit/core/internal/panics"
)

const (
	// askedTogether is how many counters one script looks at for an Explanation, so that it does
	// not delay calls.
	askedTogether = 16
	// askedAtOnce is how many of these scripts are under way at once.
	askedAtOnce = 4
)

// question asks the store for one counter, of which several rules may want to know. A nil question
// is not asked.
type question struct {
	counter algorithm.Counter
	verdict algorithm.Verdict
}

// answer returns the store's answer, or nil if there is none.
func (q *question) answer() *algorithm.Verdict {
	if q == nil || q.verdict.Err != nil {
		return nil
	}
	return &q.verdict
}

// questions are all questions of an Explanation, each once.
type questions map[questionKey]*question

// questionKey has what distinguishes questions. The key of a counter says which algorithm and window
// it has.
type questionKey struct {
	key  string
	max  int64
	rate algorithm.Rate
	cost int64
}

// add returns the question about a counter, which is a new one unless it was asked before.
func (all questions) add(key string, limit *algorithm.Limit, cost int64) *question {
	of := questionKey{key, limit.Max, limit.Rate, cost}
	q := all[of]
	if q == nil {
		// No counter refuses a call, so that each rule gets an answer whatever the others say.
		q = &question{counter: algorithm.Counter{Key: []byte(key), Limit: limit, Cost: cost, Dry: true}}
		all[of] = q
	}
	return q
}

// inOrder returns the questions in order of their keys: those of one subject are on one server.
func (all questions) inOrder() []*question {
	keys := make([]questionKey, 0, len(all))
	for key := range all {
		keys = append(keys, key)
	}
	slices.SortFunc(keys, func(a, b questionKey) int { return strings.Compare(a.key, b.key) })
	list := make([]*question, len(keys))
	for i, key := range keys {
		list[i] = all[key]
	}
	return list
}

// askAll asks the store, in several scripts at once.
func (f *front) askAll(ctx context.Context, all []*question) {
	parts := slices.Collect(slices.Chunk(all, askedTogether))
	var next atomic.Int64
	var workers sync.WaitGroup
	for range min(askedAtOnce, len(parts)) {
		workers.Go(panics.Guard(func() {
			for at := next.Add(1) - 1; at < int64(len(parts)); at = next.Add(1) - 1 {
				f.askPartSafely(ctx, parts[at])
			}
		}, f.Log.Panicked))
	}
	workers.Wait()
}

// look asks the store for some counters, when it is its turn.
func (f *front) look(ctx context.Context, counters []algorithm.Counter, verdicts []algorithm.Verdict) {
	if f.Redis != nil {
		defer f.Redis.Turn(ctx)()
	}
	f.Store.Decide(ctx, counters, false, verdicts)
}

// askPartSafely is askPart, but a panic is the error of all counters.
func (f *front) askPartSafely(ctx context.Context, part []*question) {
	panics.Guard(func() { f.askPart(ctx, part) }, func(err error) {
		f.Log.Panicked(err)
		for _, q := range part {
			q.verdict = algorithm.Verdict{Err: &failure.Error{Class: failure.Unexpected, Err: err}}
		}
	})()
}

// askPart asks the store for some counters together, or one by one if it cannot read one of them.
func (f *front) askPart(ctx context.Context, part []*question) {
	counters, verdicts := make([]algorithm.Counter, len(part)), make([]algorithm.Verdict, len(part))
	for i, q := range part {
		counters[i] = q.counter
	}
	f.look(ctx, counters, verdicts)
	for i, q := range part {
		if q.verdict = verdicts[i]; q.verdict.Ended != nil {
			q.verdict = algorithm.Verdict{Err: failure.NoAnswer(failure.Timeout, f.Timeout, q.verdict.Ended)}
		}
	}
	isForeign := func(v algorithm.Verdict) bool { return v.Err != nil && failure.ClassOf(v.Err) == failure.Foreign }
	if len(part) > 1 && slices.ContainsFunc(verdicts, isForeign) {
		for i := range part {
			f.askPart(ctx, part[i:i+1])
		}
	}
}
