package engine

import (
	"slices"

	"github.com/accesslimit/accesslimit/core/internal/algorithm"
	"github.com/accesslimit/accesslimit/core/internal/rediskey"
)

// Add adds the counters of a rule that applies: one for each limit, and then its ban. If the cost
// of the call can never fit, it adds nothing and notes the rule as Costly. There are two exceptions:
// a soft rule is exceeded, and for a rule with overrides only the store knows the limit in force.
func (c *Call) Add(a *Applied) {
	c.hasSoft = c.hasSoft || a.Rule.Soft
	c.warns = c.warns || len(a.Rule.Warn) > 0
	before := len(c.counters)
	c.watched = c.watched[:0]
	var q *algorithm.OverrideQuery
	if a.Rule.mayBeOverridden() {
		q = c.askOverride(a)
	}
	if a.counts() {
		if costly := c.addLimits(a, q); costly >= 0 {
			c.counters, c.verdicts, c.limits = c.counters[:before], c.verdicts[:before], c.limits[:before]
			c.costs(a, costly)
			return
		}
	}
	if a.Rule.Ban != nil { // it also holds for calls that cost nothing
		c.addBan(a)
	}
}

// costs notes that the cost of the call can never fit into the limit at n of a rule.
func (c *Call) costs(a *Applied, n int) {
	if c.costly.By == nil {
		c.costly = Costly{By: a, N: n, At: -1, Most: a.limit(n).Compiled.Most(a.Reserves)}
	}
}

// addLimits adds the counters of a rule's limits, and notes the indexes of those that a ban
// watches. If q is not nil, the limits obey the override. If the cost can never fit, addLimits
// returns the index of a limit that it exceeds, otherwise -1.
func (c *Call) addLimits(a *Applied, q *algorithm.OverrideQuery) (costly int) {
	cost := a.Cost
	costly = -1
	if cost > 1 { // one permit fits into every limit
		cost = a.cost()
		costly = a.above(cost)
	}
	if costly >= 0 && !a.Rule.Soft {
		return costly
	}
	var l lenience
	if a.Rule.Soft {
		l = c.lenience(a, costly >= 0)
	}
	for n := range a.Rule.Limits {
		if l.costly {
			cost = 0
		}
		at, fits := c.addLimit(a, n, cost)
		switch {
		case !fits:
			return n
		case at < 0:
			continue
		case a.Rule.Soft:
			l = c.applyLenience(at, l)
		}
		if a.Rule.Ban != nil {
			c.watched = append(c.watched, at)
		}
		if q != nil {
			c.obeyLater(at, q, n == 0, a.Own == nil)
		}
	}
	return -1
}

// cost returns what the call costs. With overrides, the limits are known only when the store has
// answered.
func (a *Applied) cost() int64 {
	switch {
	case a.Rule.mayBeOverridden() && a.Cost != algorithm.LargestCost && !a.Reserves && !a.InDebt: // these may exceed the limit
		return min(a.Cost, algorithm.MaxPermits+1)
	case !a.Rule.mayBeOverridden() && a.Cost == algorithm.LargestCost:
		return a.Rule.LargestCost(a.Own)
	default:
		return a.Cost
	}
}

// above returns the index of the first limit into which a cost can never fit, or -1.
func (a *Applied) above(cost int64) (n int) {
	for n := range a.Rule.Limits {
		limit := a.limit(n).Compiled
		if a.tooCostly(cost, limit) && !limit.Properties().Slots { // every call takes one slot
			return n
		}
	}
	return -1
}

// tooCostly reports whether a cost is more than a limit ever lets through. With overrides, only the
// store knows the limit in force.
func (a *Applied) tooCostly(cost int64, limit *algorithm.Limit) bool {
	return cost > limit.Most(a.Reserves) && !a.Rule.mayBeOverridden() && !a.InDebt
}

// addLimit adds the counter of a rule's limit, and returns its index. If an earlier rule has the
// same counter, addLimit merges the two: the call is charged once, and the stricter limit holds.
// The index is -1 if the rule is soft and the earlier one is not.
func (c *Call) addLimit(a *Applied, n int, cost int64) (at int, fits bool) {
	limit := a.limit(n)
	counter := c.addCounter(a, limit.Compiled, limit.CostOf(cost))
	counter.Key = c.appendKey(counter.Key, a, limit)
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
	return len(c.counters) - 1, true
}

// addCounter adds a counter of a rule and room for its verdict. Its empty Key reuses the memory of an
// earlier call's key. Override is already nil: see forgetOverrides.
func (c *Call) addCounter(a *Applied, limit *algorithm.Limit, cost int64) *algorithm.Counter {
	if len(c.counters) < cap(c.counters) {
		c.counters = c.counters[:len(c.counters)+1]
	} else {
		c.counters = append(c.counters, algorithm.Counter{})
	}
	c.verdicts = append(c.verdicts, algorithm.Verdict{})
	counter := &c.counters[len(c.counters)-1]
	// One by one, so that nothing large is copied.
	counter.Key, counter.Limit, counter.Cost, counter.Mark = counter.Key[:0], limit, cost, ""
	counter.Lease, counter.Watched, counter.Group = 0, nil, 0
	counter.Lenient, counter.Personal = a.Rule.Soft, a.Personal
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

// addBan adds the ban of a rule. It watches the rule's counters. If an earlier rule of this call
// has the same ban, that ban watches them too.
func (c *Call) addBan(a *Applied) {
	counter := c.addCounter(a, a.Rule.Ban, 0)
	counter.Key = rediskey.Append(counter.Key, c.engine.KeyHead, a.Subject, a.Rule.BanKey)
	if at := c.earlier(); at >= 0 {
		c.dropLast()
		c.watched = append(c.watched, c.counters[at].Watched...)
		c.counters[at].Watched = sortedIndexes(c.watched)
		return
	}
	counter.Watched = sortedIndexes(c.watched)
	c.limits = append(c.limits, CallLimit{Applied: a, Limit: a.Rule.Limits[0], IsBan: true})
}

// usualIndexes holds the lists that sortedIndexes usually returns, so that it need not allocate
// them.
var usualIndexes = [...]int{0, 1, 2, 3, 4, 5, 6, 7}

// sortedIndexes returns the indexes in order and without repetition, in a list that must not be
// written to. It sorts its argument.
func sortedIndexes(indexes []int) []int {
	slices.Sort(indexes)
	indexes = slices.Compact(indexes)
	if len(indexes) == 0 {
		return nil
	}
	first, last := indexes[0], indexes[len(indexes)-1]
	if last-first == len(indexes)-1 && last < len(usualIndexes) {
		return usualIndexes[first : last+1 : last+1]
	}
	return slices.Clone(indexes)
}
