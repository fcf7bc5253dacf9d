package engine

import (
	"bytes"
	"cmp"
	"slices"

	"github.com/accesslimit/accesslimit/core/internal/algorithm"
)

// A soft rule refuses nobody: it is a call behind the one of the other rules. If that passes, the store
// charges either all counters of the rule or, if the call does not fit into one of them, none.

// A soft rule has the usual counters, so a limit can become soft and hard again without losing its
// use, and handles of its name reach it. Only soft rules may share its name: they do not count calls
// that do not fit, and a hard rule with the same counter would miss them.

// lenience is what the counters of a soft rule have in common in a call.
type lenience struct {
	behind uint16 // Counter.Behind; 0: the rule is not soft
	costly bool   // the cost is above one of the limits, so none of them is charged
}

// applyLenience applies the lenience of a rule to its counter at an index. If another soft rule has the
// same counter, both are one call, and a cost that is too high for one rule is
// too high for both. It returns the lenience for the further counters of the rule.
func (c *Call) applyLenience(at int, l lenience) lenience {
	for i := range c.counters {
		if c.counters[i].Behind == l.behind {
			c.counters[i].Behind = c.counters[at].Behind
		}
	}
	l.behind = c.counters[at].Behind
	if l.costly = l.costly || c.limits[at].Costly; l.costly {
		c.lookOnlyAt(at)
	}
	return l
}

// order moves the counters of soft rules behind the others, each call's together, as stores take them. It
// returns a function that moves them back, with their verdicts.
func (c *Call) order() (restore func()) {
	byCall := func(a, b algorithm.Counter) int { return cmp.Compare(a.Behind, b.Behind) }
	if !c.hasSoft || slices.IsSortedFunc(c.counters, byCall) {
		return stay
	}
	own := slices.Clone(c.counters)
	slices.SortStableFunc(c.counters, byCall)
	return func() {
		verdicts := slices.Clone(c.verdicts)
		for i := range own {
			at := slices.IndexFunc(c.counters, func(o algorithm.Counter) bool { return bytes.Equal(o.Key, own[i].Key) })
			own[i].Cost, c.verdicts[i] = c.counters[at].Cost, verdicts[at]
		}
		copy(c.counters, own)
	}
}

func stay() {}

// lookOnlyAt makes the store look at the counter at an index, and at those of its group, without
// charging them.
func (c *Call) lookOnlyAt(at int) {
	c.hasCostly = true
	for i := range c.counters {
		if c.counters[i].Behind == c.counters[at].Behind {
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
