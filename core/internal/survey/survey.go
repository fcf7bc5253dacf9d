// Package survey has the store that the engine uses for reports on how calls would be decided. It
// answers with what was read before, and charges nothing.
package survey

import (
	"context"

	"github.com/accesslimit/accesslimit/core/internal/algorithm"
	"github.com/accesslimit/accesslimit/core/internal/limiter"
)

// Survey is the engine.Store of one report. It first notes what the engine asks as questions, and
// answers that everything fits. [Survey.Ask] asks the limiter's store all of the questions at once, and
// then the Survey gives its answers to the engine. It is not safe for concurrent use.
type Survey struct {
	parts     *limiter.Parts
	questions map[questionKey]*Question // nil before Begin
	now       int64                     // microseconds since the epoch
}

// New returns an empty Survey. Until [Survey.Begin], it answers that everything fits, and notes nothing.
func New(parts *limiter.Parts) *Survey { return &Survey{parts: parts} }

// Begin begins to note questions.
func (s *Survey) Begin() { s.questions = make(map[questionKey]*Question) }

// Any stands for limits that are not known. Every call fits into it.
var Any = func() *algorithm.Limit {
	limit := algorithm.Any()
	return &limit
}()

// Do implements engine.Store, for the ops of reports: those that look, and those that charge all or none.
func (s *Survey) Do(_ context.Context, op *algorithm.Op) {
	for i := range op.Counters {
		op.Verdicts[i] = s.look(&op.Counters[i])
	}
}

// look returns the store's answer for a counter.
func (s *Survey) look(c *algorithm.Counter) algorithm.Verdict {
	if s.questions == nil || c.Limit == Any {
		return algorithm.Verdict{At: s.now}
	}
	v := s.About(string(c.Key), c.Limit, c.Cost).verdict
	v.Remaining = max(0, v.Remaining)
	return v
}
