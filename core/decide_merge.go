package core

import (
	"bytes"
	"slices"
)

// mergeLast merges the last counter, of a rule's limit, into the one at i, which has the same key.
// It returns the place of the counter, or -1 if the limit has no counter any more. The reason is
// Allowed, or the reason to refuse the call.
func (c *call) mergeLast(i int, a *appliedRule, limit *ruleLimit) (at int, reason Reason) {
	into, last := &c.counters[i], &c.counters[len(c.counters)-1]
	if into.Dry != last.Dry {
		return c.keepHard(i, a, limit), Allowed
	}
	into.Cost = max(into.Cost, last.Cost)
	into.Required = into.Required || last.Required
	into.Personal = into.Personal || last.Personal
	into.LocalShare = stricter(into.LocalShare, last.LocalShare)
	c.dropLast()
	later := callLimit{appliedRule: a}
	later.use(limit)
	c.tighten(i, &later)
	switch {
	case into.Cost <= into.Limit.Max || a.rule.Overrides:
		return i, Allowed
	case a.rule.lenient:
		c.limits[i].costly = true
		return i, Allowed
	default:
		return i, CostTooHigh
	}
}

// keepHard keeps one of two counters with the same key, the last one and the one at i, of which one
// belongs to a soft rule: it keeps the other. This happens only if the soft rule has the name that
// an unnamed rule takes from its route or its patterns.
func (c *call) keepHard(i int, a *appliedRule, limit *ruleLimit) (at int) {
	last := len(c.counters) - 1
	if c.counters[last].Dry {
		c.dropLast()
		return -1
	}
	c.counters[i], c.counters[last] = c.counters[last], c.counters[i] // swapped, so that each keeps a buffer of its own for Key
	c.counters[last].Override = nil
	c.dropLast()
	c.limits[i] = callLimit{appliedRule: a}
	c.limits[i].use(limit)
	return i
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
	count, costly := eitherCounts(c.limits[i].count, later.count), c.limits[i].costly
	warn := bothWarn(c.limits[i].warnings(), later.warnings())
	if both.Algorithm.properties().Burst {
		both.Burst = min(earlier.atOnce(), later.limit.atOnce())
	}
	if earlier.Max < both.Max {
		both.Max = earlier.Max
	} else {
		c.limits[i] = *later
	}
	c.limits[i].count, c.limits[i].costly, c.limits[i].warn = count, costly, warn
	if prepared := c.limiter.registry.limits.of(both); prepared.err == nil {
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

// bothWarn merges two ascending lists of fractions into one. The result must not be changed, because
// it may be one of the two.
func bothWarn(a, b []float64) []float64 {
	switch {
	case len(b) == 0 || slices.Equal(a, b):
		return a
	case len(a) == 0:
		return b
	}
	both := slices.Concat(a, b)
	slices.Sort(both)
	return slices.Compact(both)
}
