package engine

import "bytes"

// mergeLast merges the last counter, of a rule's limit, into the one at i, which has the same key.
// It returns the index of the counter, or -1 if the limit no longer has one.
func (c *Call) mergeLast(i int, a *Applied, n int, limit *Limit) (at int, fits bool) {
	into, last := &c.op.Counters[i], &c.op.Counters[len(c.op.Counters)-1]
	if (into.Behind != 0) != (last.Behind != 0) {
		return c.keepEnforced(i, a, n, limit), true
	}
	cost := last.Cost
	into.Required = into.Required || last.Required
	into.Personal = into.Personal || last.Personal
	into.LocalShare = stricter(into.LocalShare, last.LocalShare)
	c.dropLast()
	into.Cost = max(into.Cost, cost)
	c.tighten(i, a, n, limit)
	switch {
	case !a.tooCostly(into.Cost, into.Limit):
		return i, true
	case a.Rule.Soft:
		c.limits[i].Costly = true
		return i, true
	default:
		return i, false
	}
}

// keepEnforced keeps one of two counters with the same key, the last one and the one at i. One of them
// belongs to a soft rule; keepEnforced keeps the other. This happens only if the soft rule's name is
// the one that an unnamed rule takes from its route or its patterns.
func (c *Call) keepEnforced(i int, a *Applied, n int, limit *Limit) (at int) {
	last := len(c.op.Counters) - 1
	if c.op.Counters[last].Behind != 0 {
		c.dropLast()
		return -1
	}
	c.op.Counters[i], c.op.Counters[last] = c.op.Counters[last], c.op.Counters[i] // swapped, so that each keeps the memory of its own Key
	c.dropLast()
	c.limits[i] = CallLimit{Applied: a, Limit: limit, N: n}
	return i
}

// earlier returns the index of an earlier counter with the key of the last one, or -1.
func (c *Call) earlier() int {
	last := len(c.op.Counters) - 1
	for i := range last {
		if bytes.Equal(c.op.Counters[i].Key, c.op.Counters[last].Key) {
			return i
		}
	}
	return -1
}

// dropLast removes the last counter.
func (c *Call) dropLast() {
	last := len(c.op.Counters) - 1
	c.op.Counters, c.op.Verdicts = c.op.Counters[:last], c.op.Verdicts[:last]
}

// tighten makes the limit at i as strict as a later one with the same counter. It allows only as
// many calls, and as large a burst, as both do. Callers are shown the rule that allows fewer.
func (c *Call) tighten(i int, a *Applied, n int, limit *Limit) {
	present, counter := &c.limits[i], &c.op.Counters[i]
	permits, burst := present.permits(), counter.Limit.Max
	if permits < limit.Max {
		present.Merged = c.with(present.Merged, a)
	} else {
		merged := c.with(present.Merged, present.Applied)
		*present = CallLimit{Applied: a, Limit: limit, N: n, Costly: present.Costly, Merged: merged}
	}
	permits, burst = min(permits, limit.Max), min(burst, limit.Compiled.Max)
	if both := limit.Compiled.Numbered(permits, burst); both != nil {
		present.Max, present.Burst, counter.Limit = permits, burst, both
	}
}

// with returns a list with one more rule, in memory that later calls reuse.
func (c *Call) with(rules []*Applied, a *Applied) []*Applied {
	from := len(c.merged)
	c.merged = append(append(c.merged, rules...), a)
	return c.merged[from:len(c.merged):len(c.merged)]
}

// permits returns the number of permits in a window of the limit.
func (a *CallLimit) permits() int64 {
	if a.Max > 0 {
		return a.Max
	}
	return a.Limit.Max
}
