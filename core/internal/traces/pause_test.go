package traces

import (
	"context"
	"time"

	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/core/internal/algorithm"
	"github.com/accesslimit/accesslimit/core/internal/limiter"
	"github.com/accesslimit/accesslimit/core/internal/terms"
)

// The first pause after a refusal without a time, and the longest one, in microseconds.
const basePause, longestPause = 1_000_000, 10_000_000

// paused returns what a call that goes out finds after a step about pauses, or nil if the step is
// not.
func (p *player) paused(s *step) (cells []string) {
	ctx, stored := context.Background(), (*limiter.Limiter[core.Rule])(p.limiter).Parts().Pauses.Stored(rule, subject)
	var err error
	switch s.do {
	case "ask":
	case "refuse", "announce D":
		err = p.store.Change(ctx, &algorithm.Change{Kind: algorithm.Pauses, Key: stored, Pause: &algorithm.Pause{
			Span: min(s.span, 24*time.Hour).Microseconds(), Refused: s.do == "refuse", Base: basePause, Longest: longestPause,
		}})
	case "answer":
		err = p.store.Change(ctx, &algorithm.Change{Kind: algorithm.EndsPause, Key: stored})
	default:
		return nil
	}
	op := algorithm.NewOp(algorithm.Looks, algorithm.Counter{Key: stored, Limit: &algorithm.PauseLimit})
	p.store.Do(ctx, op)
	v := &op.Verdicts[0]
	span := func(micros int64) string { return terms.Span(time.Duration(micros) * time.Microsecond) }
	switch {
	case err != nil:
		return []string{wordOf(err)}
	case v.Failure() != nil:
		return []string{wordOf(v.Failure())}
	case v.RetryAfter > 0:
		return []string{"paused", "reset " + span(v.ResetAfter), "retry " + span(v.RetryAfter)}
	default:
		return []string{"passes", "reset " + span(v.ResetAfter)}
	}
}
