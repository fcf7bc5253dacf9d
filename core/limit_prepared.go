package core

import (
	"github.com/accesslimit/accesslimit/core/internal/algorithm"
	"github.com/accesslimit/accesslimit/core/internal/cowmap"
)

// limitCache holds the limits that are known only per call, from LimitFor and Counter.With, in the
// form in which the engines calculate with them.
type limitCache struct {
	known cowmap.Map[Limit, *preparedLimit]
}

// preparedLimit is a checked limit, or one with the error that it has.
type preparedLimit struct {
	limit    Limit // a copy, whose texts belong to nobody else
	compiled algorithm.Limit
	err      error // a *RuleError
}

// maxLimits bounds the cache. Limits beyond it are compiled in each call.
const maxLimits = 1000

func (c *limitCache) of(limit Limit) *preparedLimit {
	if prepared, ok := c.known.Get(limit); ok {
		return prepared
	}
	prepared := prepare(limit)
	if prepared.err != nil {
		return prepared
	}
	prepared, _ = c.known.Add(prepared.limit, prepared, maxLimits)
	return prepared
}

// prepare checks a limit. Unlimited has no compiled form.
func prepare(limit Limit) *preparedLimit {
	if limit == Unlimited {
		return &preparedLimit{limit: limit}
	}
	limit = limit.clone()
	compiled, err := limit.compile()
	return &preparedLimit{limit, compiled, err}
}
