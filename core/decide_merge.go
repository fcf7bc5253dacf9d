package core

import "bytes"

// mergeLast merges the last counter, of a rule's limit, into the one at i, which has the same key.
// It returns the reason to refuse the call, or Allowed.
func (c *call) mergeLast(i int, a *appliedRule, limit *ruleLimit) Reason {
	into, last := &c.counters[i], &c.counters[len(c.counters)-1]
	into.Cost = max(into.Cost, last.Cost)
	into.Required = into.Required || last.Required
	into.Personal = into.Personal || last.Personal
	into.LocalShare = stricter(into.LocalShare, last.LocalShare)
	c.dropLast()
	later := callLimit{appliedRule: a}
	later.use(limit)
	c.tighten(i, &later)
	if into.Cost > into.Limit.Max && !a.rule.Overrides {
		return CostTooHigh
	}
	return Allowed
}

// earlier returns the place of an earlier counter with the key of the last one, or -1.
func (c *call) earlier() int {
	last := len(c.counters) - 1
	for i := range last {
		if bytes.Equal(c.counters[i].Key, c.counters[last].Key) {
			return i
		}
	}
	return -1
}

// dropLast removes the last counter.
func (c *call) dropLast() {
	last := len(c.counters) - 1
	c.counters, c.verdicts = c.counters[:last], c.verdicts[:last]
}

// tighten makes the limit at i as strict as a later one with the same counter: as many calls, and
// as large a burst, as both allow. Callers are shown the rule that allows fewer.
func (c *call) tighten(i int, later *callLimit) {
	earlier, both := *c.limits[i].limit, *later.limit
	count := eitherCounts(c.limits[i].count, later.count)
	if both.Algorithm.properties().Burst {
		both.Burst = min(earlier.atOnce(), later.limit.atOnce())
	}
	if earlier.Max < both.Max {
		both.Max = earlier.Max
	} else {
		c.limits[i] = *later
	}
	c.limits[i].count = count
	if prepared := c.limiter.limits.of(both); prepared.err == nil {
		c.counters[i].Limit, c.limits[i].limit = &prepared.compiled, &prepared.limit
	}
}

// eitherCounts returns the Count of a charge that two rules share: the call counts if either says
// so. nil counts every call.
func eitherCounts(a, b func(status int) bool) func(status int) bool {
	if a == nil || b == nil {
		return nil
	}
	return func(status int) bool { return a(status) || b(status) }
}
