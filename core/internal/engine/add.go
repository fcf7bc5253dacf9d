package engine

import (
	"github.com/accesslimit/accesslimit/core/internal/algorithm"
	"github.com/accesslimit/accesslimit/core/internal/rediskey"
)

// Add adds the counters of a rule that applies: one for each limit. If the subject is blocked or
// banned, it notes that instead. If the cost of the call can never fit, it adds nothing and notes the
// rule as Costly, except that a soft rule is exceeded.
func (c *Call) Add(a *Applied) {
	c.hasSoft = c.hasSoft || a.Rule.Soft
	if a.Mark != nil && a.Mark.Refuses() {
		c.marked = append(c.marked, a)
		c.refused = c.refused || !a.Rule.Soft
		return
	}
	c.warns = c.warns || len(a.Rule.Warn) > 0
	before := len(c.op.Counters)
	if !a.Counts() {
		return
	}
	if costly := c.addLimits(a); costly >= 0 {
		c.op.Counters, c.op.Verdicts, c.limits = c.op.Counters[:before], c.op.Verdicts[:before], c.limits[:before]
		c.costs(a, costly)
	}
}

// costs notes that the cost of the call can never fit into the limit at n of a rule.
func (c *Call) costs(a *Applied, n int) {
	if c.costly.By == nil {
		c.costly = Costly{By: a, N: n, At: -1, Most: a.limit(n).Compiled.Most(a.Reserves)}
	}
}

// addLimits adds the counters of a rule's limits. If the cost can never fit, it returns the index of
// a limit that it exceeds, otherwise -1.
func (c *Call) addLimits(a *Applied) (costly int) {
	cost := a.Cost
	costly = -1
	if cost > 1 { // one permit fits into every limit
		if cost == algorithm.LargestCost {
			cost = a.Largest()
		}
		costly = a.above(cost)
	}
	if costly >= 0 && !a.Rule.Soft {
		return costly
	}
	l := lenience{costly: costly >= 0}
	if a.Rule.Soft {
		l.behind = uint16(len(c.op.Counters) + 1)
	}
	for n := range a.count() {
		if l.costly {
			cost = 0
		}
		at, fits := c.addLimit(a, n, cost, l.behind)
		switch {
		case !fits:
			return n
		case at < 0:
			continue
		case a.Rule.Soft:
			l = c.applyLenience(at, l)
		}
	}
	return -1
}

// above returns the index of the first limit into which a cost can never fit, or -1.
func (a *Applied) above(cost int64) (n int) {
	for n := range a.count() {
		limit := a.limit(n).Compiled
		if a.tooCostly(cost, limit) && !limit.Properties().Slots { // every call takes one slot
			return n
		}
	}
	return -1
}

// tooCostly reports whether a cost is more than a limit ever lets through.
func (a *Applied) tooCostly(cost int64, limit *algorithm.Limit) bool {
	return cost > limit.Most(a.Reserves) && !a.InDebt
}

// addLimit adds the counter of a rule's limit, and returns its index. If an earlier rule has the
// same counter, addLimit merges the two: the call is charged once, and the stricter limit holds.
// The index is -1 if the rule is soft and the earlier one is not.
func (c *Call) addLimit(a *Applied, n int, cost int64, behind uint16) (at int, fits bool) {
	limit := a.limit(n)
	counter := c.addCounter(a, limit.Compiled, limit.CostOf(cost))
	counter.Key, counter.Behind = c.appendKey(counter.Key, a, limit), behind
	switch {
	case c.looksOnly:
	case limit.Compiled.Properties().Slots:
		counter.Mark = c.slotHolder()
	case a.Note != "" && limit.Compiled.Properties().Notes:
		counter.Mark = a.Note
	}
	at = c.earlier()
	if at >= 0 {
		return c.mergeLast(at, a, n, limit)
	}
	c.limits = append(c.limits, CallLimit{})
	added := &c.limits[len(c.limits)-1] // filled in place: see addCounter
	added.Applied, added.Limit, added.N = a, limit, n
	return len(c.op.Counters) - 1, true
}

// addCounter adds a counter of a rule and room for its verdict. Its empty Key reuses the memory of an
// earlier call's key.
func (c *Call) addCounter(a *Applied, limit *algorithm.Limit, cost int64) *algorithm.Counter {
	if len(c.op.Counters) < cap(c.op.Counters) {
		c.op.Counters = c.op.Counters[:len(c.op.Counters)+1]
	} else {
		c.op.Counters = append(c.op.Counters, algorithm.Counter{})
	}
	c.op.Verdicts = append(c.op.Verdicts, algorithm.Verdict{})
	counter := &c.op.Counters[len(c.op.Counters)-1]
	// One by one, so that nothing large is copied.
	counter.Key, counter.Limit, counter.Cost, counter.Mark = counter.Key[:0], limit, cost, ""
	counter.Lease, counter.Personal = 0, a.Personal
	counter.Required, counter.LocalShare = a.Rule.Required, a.Rule.LocalShare
	return counter
}

// appendKey appends the key of a counter of the applied rule.
func (c *Call) appendKey(room []byte, a *Applied, limit *Limit) []byte {
	if limit.KeyTail == "" {
		return rediskey.AppendLimit(room, c.engine.KeyHead, a.Subject, a.Rule.Name, false, limit.Compiled)
	}
	return rediskey.Append(room, c.engine.KeyHead, a.Subject, limit.KeyTail)
}

// slotHolder returns the name under which the call holds its slots. All slots of a call have the
// same name, because they are renewed together.
func (c *Call) slotHolder() string {
	if c.holder == "" {
		c.holder = c.engine.Slots.NewHolder()
	}
	return c.holder
}
