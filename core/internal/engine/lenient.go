package engine

import "github.com/accesslimit/accesslimit/core/internal/algorithm"

// A soft rule refuses nobody, so its counters are lenient. If the call passes, the store charges
// either all counters of the rule or, if the call does not fit into one of them, none. A rule with one
// limit needs no group, which shortens the arguments of the script.

// A soft rule has the usual counters, so a limit can become soft and hard again without losing its
// use, and handles of its name reach it. Only soft rules may share its name: they do not count calls
// that do not fit, and a hard rule with the same counter would miss them.

// lenience is what the counters of a soft rule have in common in a call.
type lenience struct {
	group  uint16 // Counter.Group; 0: none, or the rule has a single limit
	costly bool   // the cost is above one of the limits, so none of them is charged
}

// lenience returns the lenience of a rule whose counters are about to be added.
func (c *Call) lenience(a *Applied, costly bool) (l lenience) {
	if a.count() > 1 {
		l.group = uint16(len(c.counters) + 1)
	}
	l.costly = costly
	return l
}

// applyLenience applies the lenience of a rule to its counter at an index. If another rule has the
// same counter, the groups of both rules are united, and a cost that is too high for one rule is
// too high for both. It returns the lenience for the further counters of the rule.
func (c *Call) applyLenience(at int, l lenience) lenience {
	counter := &c.counters[at]
	if counter.Group == 0 || l.group == 0 {
		counter.Group = max(counter.Group, l.group)
	} else {
		c.unite(l.group, counter.Group)
		l.group = counter.Group
	}
	if l.costly = l.costly || c.limits[at].Costly; l.costly {
		c.lookOnlyAt(at)
	}
	return l
}

// unite moves all counters of one group into another.
func (c *Call) unite(from, to uint16) {
	for i := range c.counters {
		if c.counters[i].Group == from {
			c.counters[i].Group = to
		}
	}
}

// lookOnlyAt makes the store look at the counter at an index, and at those of its group, without
// charging them.
func (c *Call) lookOnlyAt(at int) {
	c.hasCostly = true
	for i := range c.counters {
		if group := c.counters[i].Group; i == at || group > 0 && group == c.counters[at].Group {
			c.counters[i].Cost, c.limits[i].Costly = 0, true
		}
	}
}

// exceedCostly marks the limits into which the cost can never fit as exceeded. The store only
// looked at their counters, so it does not report that.
func (c *Call) exceedCostly() {
	for i := range c.limits {
		if v := &c.verdicts[i]; c.limits[i].Costly && v.Err == nil && v.Ended == nil {
			v.RetryAfter = algorithm.Forever
		}
	}
}
