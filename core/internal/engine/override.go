package engine

import (
	"github.com/accesslimit/accesslimit/core/internal/algorithm"
	"github.com/accesslimit/accesslimit/core/internal/rediskey"
)

// A call by a rule with overrides asks the store for its counters and for the override of its
// subject in one query. The override is known when the store has answered, and is applied then: the
// limits become those in force, and counters that the override lifts are removed, as if the call
// had never had them.

// askOverride returns the query for the override of the rule's subject.
func (c *Call) askOverride(a *Applied) *algorithm.OverrideQuery {
	if c.asked == len(c.queries) {
		c.queries = append(c.queries, new(algorithm.OverrideQuery))
	}
	q := c.queries[c.asked]
	c.asked++
	q.Ask(a.Rule.Limits[0].Compiled)
	q.Key = rediskey.Append(q.Key, c.engine.KeyHead, a.Subject, a.Rule.OverrideKey)
	return q
}

// MayBeOverridden reports whether the call asked for overrides.
func (c *Call) MayBeOverridden() bool { return c.asked > 0 }

// forgetOverrides ends the queries of a call. Only calls that asked for overrides pay for resetting
// the counters. If addCounter did it, each call by any rule would take a twelfth longer ("core
// alone, no headers" in BenchmarkCheck of core).
func (c *Call) forgetOverrides() {
	c.asked = 0
	for i := range c.counters[:cap(c.counters)] {
		c.counters[:cap(c.counters)][i].Override = nil
	}
}

// obeyLater makes the counter at an index obey the override. If an earlier rule has the same
// counter, both rules have the same name, and so the same override.
func (c *Call) obeyLater(at int, q *algorithm.OverrideQuery, own, planUnlimited bool) {
	counter := &c.counters[at]
	if counter.Override == nil {
		counter.Override, counter.Own, counter.CountsIfOverridden = q, own, planUnlimited
	} else {
		counter.CountsIfOverridden = counter.CountsIfOverridden && planUnlimited
	}
}

// Override returns the override that the store found for the rule's own limit at i, or nil if the
// call did not ask for one.
func (c *Call) Override(i int) *algorithm.FoundOverride {
	if counter := &c.counters[i]; counter.Override != nil && counter.Own {
		return &counter.Override.Found
	}
	return nil
}

// obey gives the limits of the call the numbers of the overrides, and removes the counters that are
// not in force. It reports false if the cost is above a limit in force and no subject is blocked.
// Then the call is refused, and nothing was charged. Headers, decisions, refunds and counts need
// not know about the counters that are removed here.
func (c *Call) obey() (fits bool) {
	algorithm.Obey(c.counters)
	for i := range c.limits {
		c.reportIgnored(i)
	}
	blocked := c.refusedByBlock()
	for i := range c.limits {
		if !blocked && !c.counters[i].Lenient && c.verdicts[i].Costly {
			c.costly = Costly{c.limits[i].Applied, c.limits[i].N, i, c.counters[i].Limit.Most(c.limits[i].Reserves)}
			return false
		}
	}
	c.dropLifted(blocked)
	return true
}

// refusedByBlock reports whether the subject of a rule that refuses calls is blocked.
func (c *Call) refusedByBlock() bool {
	for i := range c.counters {
		if !c.counters[i].Lenient && c.verdicts[i].Blocked {
			return true
		}
	}
	return false
}

// reportIgnored reports an override that does not apply to the limit at i.
func (c *Call) reportIgnored(i int) {
	found := c.Override(i)
	switch {
	case found == nil:
	case found.What == algorithm.OverrideOfOther:
		c.observer.OverrideIgnored(c.limits[i].Applied, algorithm.ErrOverrideSpan)
	case found.What == algorithm.OverrideInvalid:
		c.observer.OverrideIgnored(c.limits[i].Applied, algorithm.ErrNoOverride)
	}
}

// dropLifted removes the counters that took no part in the decision: those that an override lifts,
// those of an unlimited plan without an override, those that were only asked for a block, and, if
// the call is refused for a block, all but the blocked ones. Other servers may have answered for
// these if the server of the block is down. The counter of a free rule has a cost if another rule
// shares it.
func (c *Call) dropLifted(blocked bool) {
	c.drop(func(at int) bool {
		a, v := &c.limits[at], &c.verdicts[at]
		if v.From == algorithm.FromNobody {
			if v.Instead != nil {
				c.observer.StoreFailed(a.Applied, v.Instead)
			}
			return true
		}
		counter := &c.counters[at]
		besideBlock := blocked && v.Instead == nil
		askedForBlockOnly := a.Free && counter.Cost == 0 && counter.Override != nil
		return (besideBlock || askedForBlockOnly) && !v.Blocked && v.Err == nil && v.Ended == nil
	})
}

// drop removes limits with their counters and verdicts.
func (c *Call) drop(gone func(at int) bool) {
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
		// Two counters must not share the memory of a Key.
		c.counters[n], c.counters[i] = c.counters[i], c.counters[n]
		c.limits[n], c.verdicts[n] = c.limits[i], c.verdicts[i]
		c.counters[n].Watched = c.counters[n].WatchedIn(kept)
	}
	c.counters, c.limits, c.verdicts = c.counters[:len(kept)], c.limits[:len(kept)], c.verdicts[:len(kept)]
}
