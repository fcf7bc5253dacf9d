package core

import (
	"fmt"

	"github.com/accesslimit/accesslimit/core/internal/algorithm"
	"github.com/accesslimit/accesslimit/core/internal/rediskey"
)

// withOverrides returns the handle with overrides.
func (h *handle) withOverrides() *handle {
	if h == nil {
		return nil
	}
	changed := *h
	changed.single = nil // the path for one counter does not ask for overrides
	own := h.limits[0].limit
	switch {
	case own == Unlimited:
		changed.wrong = &RuleError{Rule: h.name, Field: "Limit", Value: own, Why: "has no span, and overrides are made for a span"}
	case !h.limiter.registry.names.claimHandle(h.name, own):
		changed.wrong = &RuleError{Rule: h.name, Field: "Limit", Value: own, Why: notOverridable}
	default:
		changed.overrideKey = rediskey.OverrideTail(h.name)
		h.limiter.banWatch.Start()
	}
	return &changed
}

// formOverridden builds the counters of a call whose subject may have an override. Only the store's
// answer tells whether the cost can ever fit.
func (c *directCall) formOverridden(q *handleCall) {
	own := q.limits[0].preparedLimit
	c.query.Ask(&own.compiled)
	c.query.Key = rediskey.Append(c.query.Key, q.limiter.keyHead, q.subject, q.overrideKey)
	for i := range q.limits {
		c.formOne(q, i, q.counted(i))
		counter := &c.counters[i]
		counter.Override, counter.Own, counter.Spared = &c.query, i == 0, q.unlimited()
	}
}

// forgetOverride ends the query of a call. See call.forgetOverrides.
func (c *directCall) forgetOverride() {
	c.query.Limit = nil
	for i := range c.counters[:cap(c.counters)] {
		c.counters[:cap(c.counters)][i].Override = nil
	}
}

// obeyOverride applies the override of the subject to the call. It reports whether the call has no
// limit left, or returns an error if the call costs too much.
func (c *directCall) obeyOverride(q *handleCall, request algorithm.Request) (lifted bool, err error) {
	algorithm.Obey(c.counters)
	found := &c.query.Found
	switch found.What {
	case algorithm.OverrideLimit:
		c.inForce = q.limits[0].limit.overridden(found)
	case algorithm.OverrideOfOther:
		c.limiter.operatorLog.OverrideIgnored(q.name, q.subject, algorithm.ErrOverrideSpan.Error())
	case algorithm.OverrideInvalid:
		c.limiter.operatorLog.OverrideIgnored(q.name, q.subject, algorithm.ErrNoOverride.Error())
	}
	if c.query.Blocks() {
		c.counters, c.verdicts = c.counters[:1], c.verdicts[:1]
		return false, nil
	}
	lifted = true
	for i := range c.counters {
		v := &c.verdicts[i]
		switch {
		case v.RetryAfter != algorithm.Forever:
		case request == algorithm.ToReserve:
			return false, fmt.Errorf("%w: %d of %v, from which %d can be reserved", ErrCostExceedsLimit, q.n, *c.limit(q, i), c.counters[i].Limit.Reserved)
		default:
			return false, fmt.Errorf("%w: %d of %v", ErrCostExceedsLimit, q.n, *c.limit(q, i))
		}
		lifted = lifted && v.From == algorithm.FromNobody
		if v.Instead != nil && lifted {
			c.limiter.failures.failed(q.name, q.policy.String(), v.Instead)
		}
	}
	return lifted, nil
}

// limit returns the limit in force at i.
func (c *directCall) limit(q *handleCall, i int) *Limit {
	if i == 0 && q.overrideKey != "" && c.query.Found.What == algorithm.OverrideLimit {
		return &c.inForce
	}
	return &q.counted(i).limit
}
