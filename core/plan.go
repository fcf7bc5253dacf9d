package core

import "github.com/accesslimit/accesslimit/core/internal/algorithm"

// planned is the quota that holds for this caller in place of the rule's own limit, as LimitFor says; nil: no limit holds.
// What LimitFor cannot say, or says wrongly, the rule's own limit stands in for.
func (c *call) planned(a *asked) *quota {
	own := a.policy.quotas[0]
	limit, err := a.rule.LimitFor(c)
	switch {
	case err != nil:
		c.limiter.complains.badPlan(a.policy.name, err)
		return own
	case limit.unlimited():
		return nil
	case limit.Algorithm == Concurrency && a.rule.inside:
		c.limiter.complains.badPlan(a.policy.name, a.rule.noSlotsInside())
		return own
	case limit == own.limit || limit == Limit{}:
		return own
	}
	if q, ok := a.policy.plans.get(limit); ok {
		return q
	}
	compiled, err := c.limiter.limits.of(limit)
	if err != nil {
		c.limiter.complains.badPlan(a.policy.name, err)
		return own
	}
	if a.rule.OnStoreError == FallBackLocal && !a.rule.canShare(compiled) {
		c.limiter.complains.badPlan(a.policy.name, a.rule.wrong("LocalShare", a.rule.LocalShare, "of the plan is "+algorithm.ErrTooLarge.Error()))
		return own
	}
	limit = limit.clone()
	q, _ := a.policy.plans.add(limit, a.rule.newQuota(a.policy.name, 0, limit, compiled), maxLimits)
	return q
}
