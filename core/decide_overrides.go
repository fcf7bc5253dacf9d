package core

import (
	"slices"

	"github.com/accesslimit/accesslimit/core/internal/algorithm"
	"github.com/accesslimit/accesslimit/core/internal/rediskey"
)

// A call by a rule with Overrides asks the store for its counters and for the override of its
// subject in one query. The override is known when the store has answered, and is applied then: the
// limits become those in force, and counters that the override lifts are removed, as if the call
// had never had them.

// boundCost bounds the cost of a call by a rule with Overrides, because its limits are known only
// when the store has answered.
func (in *ruleInputs) boundCost() {
	if in.cost != algorithm.LargestCost {
		in.cost = min(in.cost, algorithm.MaxPermits+1)
	}
}

// askForOverride returns the query for the override of the rule's subject.
func (c *call) askForOverride(a *appliedRule, bySize bool) *algorithm.OverrideQuery {
	if c.asked == len(c.queries) {
		c.queries = append(c.queries, new(algorithm.OverrideQuery))
	}
	q := c.queries[c.asked]
	c.bySizes = append(c.bySizes[:c.asked], bySize)
	c.asked++
	q.Ask(a.named.limits[0].compiled)
	q.Key = rediskey.Append(q.Key, c.limiter.keyHead, c.subjects[a.from:a.to], a.named.overrideKey)
	return q
}

// forgetOverrides ends the queries of a call. Only calls that asked for overrides pay for resetting
// the counters. If addCounter did it, each call by any rule would take a twelfth longer ("core
// alone, no headers" in BenchmarkCheck).
func (c *call) forgetOverrides() {
	c.asked = 0
	for i := range c.counters[:cap(c.counters)] {
		c.counters[:cap(c.counters)][i].Override = nil
	}
}

// mayBeOverridden makes the counter at a place obey the override. If an earlier rule has the same
// counter, both rules have one name, and so the same override.
func (c *call) mayBeOverridden(at int, q *algorithm.OverrideQuery, own, spared bool) {
	counter := &c.counters[at]
	if counter.Override == nil {
		counter.Override, counter.Own, counter.Spared = q, own, spared
	} else {
		counter.Spared = counter.Spared && spared
	}
}

// obeyOverrides gives the limits of the call the numbers of the overrides, and removes the counters
// that are not in force. If the cost is above a limit in force, it returns that limit: the call is
// refused, and nothing was charged.
func (c *call) obeyOverrides() (costly *callLimit) {
	algorithm.Obey(c.counters)
	for i := range c.counters {
		if counter := &c.counters[i]; counter.Override != nil {
			c.obey(i)
			if costly == nil && !counter.Dry && c.tooCostly(i) {
				costly = &c.limits[i]
				c.bySize = c.bySizes[slices.Index(c.queries, counter.Override)]
			}
		}
	}
	if costly != nil {
		return costly
	}
	c.dropUntried()
	c.dropLifted()
	return nil
}

// obey gives the limit at i the numbers of its override, and reports an override that is ignored.
func (c *call) obey(i int) {
	a, counter := &c.limits[i], &c.counters[i]
	found := &counter.Override.Found
	switch {
	case !counter.Own:
	case found.What == algorithm.OverrideLimit:
		a.ruleLimit = c.limiter.overridden(a.appliedRule, found)
		a.limit = &a.ruleLimit.limit
	case found.What == algorithm.OverrideOfOther:
		c.limiter.operatorLog.OverrideIgnored(a.named.name, string(c.subjects[a.from:a.to]), algorithm.ErrOverrideSpan.Error())
	case found.What == algorithm.OverrideInvalid:
		c.limiter.operatorLog.OverrideIgnored(a.named.name, string(c.subjects[a.from:a.to]), algorithm.ErrNoOverride.Error())
	}
}

// overridden returns the limit that an override makes of a rule's own.
func (l *Limiter) overridden(a *appliedRule, found *algorithm.FoundOverride) *ruleLimit {
	limit := a.rule.limits[0].overridden(found)
	if q, ok := a.named.computed.Get(limit); ok {
		return q
	}
	prepared := l.registry.limits.of(limit)
	q, _ := a.named.computed.Add(prepared.limit, a.rule.newLimit(a.named.name, 0, prepared.limit, &prepared.compiled), maxLimits)
	return q
}

// overridden returns the limit with the numbers of an override.
func (l Limit) overridden(found *algorithm.FoundOverride) Limit {
	l = l.normal()
	l.Max, l.Burst = permitsOf(found.Max), permitsOf(found.Burst)
	return l
}

// tooCostly reports whether the cost is above the limit in force at i.
func (c *call) tooCostly(i int) bool {
	return c.verdicts[i].RetryAfter == algorithm.Forever && c.counters[i].InForce()
}

// dropUntried reports the rules in DryRun whose cost is above a limit in force, and removes their
// limits. Nothing was counted for them. Those of soft rules remain, because they are exceeded.
func (c *call) dropUntried() {
	for i := 0; i < len(c.limits); i++ {
		if !c.limits[i].rule.DryRun || !c.tooCostly(i) {
			continue
		}
		a := c.limits[i].appliedRule
		c.reportUncounted(a)
		c.drop(func(at int) bool { return c.limits[at].appliedRule == a })
		i = -1 // the places have changed
	}
}

// dropLifted removes the counters that took no part in the decision: those that an override lifts,
// those of an Unlimited plan without an override, and, if a subject is blocked, all but the blocked
// ones.
func (c *call) dropLifted() {
	c.drop(func(at int) bool {
		v, counter := &c.verdicts[at], &c.counters[at]
		if v.Instead != nil && v.From == algorithm.FromNobody {
			a := &c.limits[at]
			c.limiter.failures.failed(a.named.name, a.rule.OnStoreError.String(), v.Instead)
		}
		return v.From == algorithm.FromNobody || counter.Override != nil && counter.Cost == 0 && !counter.Override.Blocks() && v.Err == nil && v.Ended == nil
	})
}

// drop removes counters with their limits and verdicts.
func (c *call) drop(gone func(at int) bool) {
	var room [8]int
	kept := room[:0]
	for i := range c.limits {
		if !gone(i) {
			kept = append(kept, i)
		}
	}
	if len(kept) == len(c.limits) {
		return
	}
	for n, i := range kept {
		// Two counters must not share the room of a Key.
		c.counters[n], c.counters[i] = c.counters[i], c.counters[n]
		c.limits[n], c.verdicts[n] = c.limits[i], c.verdicts[i]
		c.counters[n].Watched = c.counters[n].WatchedIn(kept)
	}
	c.counters, c.limits, c.verdicts = c.counters[:len(kept)], c.limits[:len(kept)], c.verdicts[:len(kept)]
}

// blocked reports whether the limit at i refuses because its subject is blocked.
func (c *call) blocked(i int) bool {
	q := c.counters[i].Override
	return q != nil && q.Blocks()
}
