package core

import (
	"math"
	"slices"
	"sync/atomic"

	"github.com/accesslimit/accesslimit/core/internal/algorithm"
	"github.com/accesslimit/accesslimit/core/internal/cowmap"
	"github.com/accesslimit/accesslimit/core/internal/engine"
	"github.com/accesslimit/accesslimit/core/internal/limitheader"
	"github.com/accesslimit/accesslimit/core/internal/marks"
	"github.com/accesslimit/accesslimit/core/internal/tally"
)

// namedRule is a rule under a name that its counters have: its own, or that of a route.
type namedRule struct {
	name   string
	tried  bool                  // it is in DryRun
	limits []*ruleLimit          // the rule's own, then those of Also
	plans  map[string]*ruleLimit // of the rule's Plans; nil for Unlimited
	// computed holds what LimitFor returned.
	computed cowmap.Map[Limit, *ruleLimit]
	// marked holds the limits of marks, by their texts.
	marked cowmap.Map[string, *markedLimits]
	// prepareAll makes limits in place of the rule's own and the further ones into ruleLimits.
	prepareAll func([]*preparedLimit) []*ruleLimit
	accepts    func(*Limit) string // why a limit does not suit, or ""
	one        bool                // a call has one limit
	counted    engine.Rule         // what the engine knows of the rule
	marks      *marks.Rule
	ban        *marks.Terms // of the bans that the rule imposes, or nil
	strikeTail string       // what follows the subject in the key of its strikes
	tally      *tally.Tally
	// readsUser is set once one of the rule's functions asked for the user; it will probably do so
	// again.
	readsUser atomic.Bool
}

// ruleLimit is a limit of a namedRule, with the constant parts of its keys and headers.
type ruleLimit struct {
	limit   Limit
	counted engine.Limit
	phrase  string // the limit in words
	policy  limitheader.Policy
}

// limitAt returns the limit at n, with own, unless it is nil, in place of the rule's own.
func (p *namedRule) limitAt(n int, own *ruleLimit) *ruleLimit {
	if n == 0 && own != nil {
		return own
	}
	return p.limits[n]
}

// countedLimits returns the limits that are known before the call, including those of plans.
func (p *namedRule) countedLimits() (limits []*ruleLimit) {
	limits = slices.Clone(p.limits)
	for _, q := range p.plans {
		if q != nil {
			limits = append(limits, q)
		}
	}
	return limits
}

// addComputed keeps a limit that LimitFor returned.
func (p *namedRule) addComputed(of *preparedLimit) *ruleLimit {
	q, _ := p.computed.Add(of.limit, p.prepareAll([]*preparedLimit{of})[0], maxLimits)
	return q
}

// limitCache holds the limits that are known only per call, from LimitFor and Counter.With, in the
// form in which the stores calculate with them.
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
