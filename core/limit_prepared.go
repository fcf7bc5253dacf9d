package core

import (
	"math"
	"sync/atomic"

	"github.com/accesslimit/accesslimit/core/internal/algorithm"
	"github.com/accesslimit/accesslimit/core/internal/cowmap"
	"github.com/accesslimit/accesslimit/core/internal/engine"
)

// limitCache holds the limits that are known only per call, from LimitFor and Counter.With, in the
// form in which the engines calculate with them.
type limitCache struct {
	known cowmap.Map[Limit, *preparedLimit]
}

// preparedLimit is a limit that was checked, or the error that the check found.
type preparedLimit struct {
	limit    Limit // a copy, whose texts belong to nobody else
	compiled algorithm.Limit
	err      error // a *RuleError
	// plain is the limit as a handle counts it, whose key is made in the call.
	plain ruleLimit

	// sharable is the share of CountLocally that was last found right for the limit, as the bits of
	// a float64. It is kept because the check takes longer than the decision.
	sharable atomic.Uint64
}

// checkPolicy returns what is wrong with a checked policy for the limit, or "".
func (p *preparedLimit) checkPolicy(policy StorePolicy) string {
	share := math.Float64bits(policy.inside().Share())
	if p.limit == Unlimited || p.sharable.Load() == share {
		return ""
	}
	why := policy.inside().CheckFor(&p.compiled)
	if why == "" {
		p.sharable.Store(share)
	}
	return why
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

// forget empties the cache.
func (c *limitCache) forget() { c.known.Clear() }

// prepare checks a limit. Unlimited has no compiled form.
func prepare(limit Limit) *preparedLimit {
	if limit == Unlimited {
		p := &preparedLimit{limit: limit}
		p.plain = ruleLimit{limit: limit, counted: engine.Limit{Compiled: &p.compiled}}
		return p
	}
	limit = limit.clone()
	compiled, err := limit.compile()
	p := &preparedLimit{limit: limit, compiled: compiled, err: err}
	p.plain = ruleLimit{limit: limit, counted: engine.Limit{Compiled: &p.compiled, Max: int64(limit.Max)}}
	return p
}
