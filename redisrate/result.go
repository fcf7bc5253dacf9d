package redisrate

import (
	"context"
	"math"
	"time"

	"github.com/accesslimit/accesslimit/core"
)

// Result is the answer to one call.
type Result struct {
	// Limit is the limit of the call.
	Limit Limit
	// Allowed is how many events may happen now.
	Allowed int
	// Remaining is how many more events may happen now.
	Remaining int
	// RetryAfter is the time after which a refused call passes if nobody else calls. For
	// AllowAtMost, that is a call for one event. It is -1 if the call was not refused.
	RetryAfter time.Duration
	// ResetAfter is the time until the key is as good as one that was never used.
	ResetAfter time.Duration
}

// result returns the Result of a decision, or the error.
func result(limit Limit, allowed int, d *core.Decision, err error) (*Result, error) {
	if err != nil {
		return nil, err
	}
	r := &Result{Limit: limit, Allowed: allowed, Remaining: d.Remaining, RetryAfter: d.RetryAfter, ResetAfter: d.ResetAfter}
	if d.Allowed {
		r.RetryAfter = -1
	}
	return r, nil
}

// neverAllowed returns the refusal of n events, which are more than a Burst. Core returns an error
// instead, with which a service that lets calls pass on errors would let this call pass. RetryAfter
// is the time until a bucket of n events would be full enough, as in redis_rate, although waiting
// does not help.
func neverAllowed(ctx context.Context, counter core.Counter, key string, limit Limit, n int) (*Result, error) {
	d, err := counter.Peek(ctx, subject(key))
	r, err := result(limit, 0, &d, err)
	if err == nil {
		beyond := float64(n-limit.Burst) * float64(limit.Period) / float64(limit.Rate)
		r.RetryAfter = d.ResetAfter + time.Duration(min(beyond, math.MaxInt64/2))
	}
	return r, err
}
