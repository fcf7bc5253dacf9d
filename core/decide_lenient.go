package core

import "github.com/accesslimit/accesslimit/core/internal/algorithm"

// A lenient rule is in DryRun or Soft: it refuses nobody. The store charges its counters if the call
// passes and fits into them, all of the rule's or none.

// lenience is what the limits of a lenient rule have in common in a call.
type lenience struct {
	group  uint16 // Counter.Group; 0: none, or the rule has a single limit
	costly bool   // the cost is above one of the limits, so none of them is charged
}

// lenience returns that of a lenient rule whose counters are about to be added.
func (c *call) lenience(a *appliedRule, own *ruleLimit, cost int64) (l lenience) {
	if len(a.named.limits) > 1 {
		l.group = uint16(len(c.counters) + 1)
	}
	l.costly = !a.rule.Overrides && cost > largestCost(own, a.named.limits)
	return l
}

// beLenient applies the lenience of a rule to its counter at a place. If another rule has that
// counter too, the two rules share one group, and what is too costly for one of them is so for both.
// It returns the lenience of the rule's further counters.
func (c *call) beLenient(at int, l lenience) lenience {
	counter := &c.counters[at]
	if counter.Group == 0 || l.group == 0 {
		counter.Group = max(counter.Group, l.group)
	} else {
		c.unite(l.group, counter.Group)
		l.group = counter.Group
	}
	if l.costly = l.costly || c.limits[at].costly; l.costly {
		c.spare(at)
	}
	return l
}

// unite makes the counters of one group those of another.
func (c *call) unite(from, to uint16) {
	for i := range c.counters {
		if c.counters[i].Group == from {
			c.counters[i].Group = to
		}
	}
}

// spare makes the store only look at the counter at a place and those of its group.
func (c *call) spare(at int) {
	c.hasCostly = true
	for i := range c.counters {
		if group := c.counters[i].Group; i == at || group > 0 && group == c.counters[at].Group {
			c.counters[i].Cost, c.limits[i].costly = 0, true
		}
	}
}

// exceedCostly makes the limits that the cost never fits into refuse it. The store only looked at
// them.
func (c *call) exceedCostly() {
	for i := range c.limits {
		if v := &c.verdicts[i]; c.limits[i].costly && v.Err == nil && v.Ended == nil {
			v.RetryAfter = algorithm.Forever
		}
	}
}

// goOnUncounted logs that the subject of a soft rule could not be determined, unless it is because
// the caller left.
func (c *call) goOnUncounted(a *appliedRule, cause error) {
	if c.Context().Err() == nil {
		c.limiter.operatorLog.IdentifyFailed(a.named.name, cause)
	}
}
