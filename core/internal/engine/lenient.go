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
	for i := range c.op.Counters {
		if c.op.Counters[i].Behind == l.behind {
			c.op.Counters[i].Behind = c.op.Counters[at].Behind
		}
	}
	l.behind = c.op.Counters[at].Behind
	if l.costly = l.costly || c.limits[at].Costly; l.costly {
		c.lookOnlyAt(at)
	}
	return l
}

// order moves the counters of soft rules behind the others, each call's together, as stores take them. It
// returns a function that moves them back, with their verdicts.
func (c *Call) order() (restore func()) {
	byCall := func(a, b algorithm.Counter) int { return cmp.Compare(a.Behind, b.Behind) }
	if !c.hasSoft || slices.IsSortedFunc(c.op.Counters, byCall) {
		return stay
	}
	own := slices.Clone(c.op.Counters)
	slices.SortStableFunc(c.op.Counters, byCall)
	return func() {
		verdicts := slices.Clone(c.op.Verdicts)
		for i := range own {
			at := slices.IndexFunc(c.op.Counters, func(o algorithm.Counter) bool { return bytes.Equal(o.Key, own[i].Key) })
			own[i].Cost, c.op.Verdicts[i] = c.op.Counters[at].Cost, verdicts[at]
		}
		copy(c.op.Counters, own)
	}
}

func stay() {}

// lookOnlyAt makes the store look at the counter at an index, and at those of its group, without
// charging them.
func (c *Call) lookOnlyAt(at int) {
	c.hasCostly = true
	for i := range c.op.Counters {
		if c.op.Counters[i].Behind == c.op.Counters[at].Behind {
			c.op.Counters[i].Cost, c.limits[i].Costly = 0, true
		}
	}
}

// exceedCostly marks the limits into which the cost can never fit as exceeded. The store only
// looked at their counters, so it does not report that.
func (c *Call) exceedCostly() {
	for i := range c.limits {
		if v := &c.op.Verdicts[i]; c.limits[i].Costly && v.Err == nil && v.Ended == nil {
			v.RetryAfter = algorithm.Forever
		}
	}
}
