package core

import "bytes"

// earlier is the place of an earlier counter of the call with the key of the last one; -1: there is none.
func (c *call) earlier() int {
	last := len(c.counters) - 1
	for i := range last {
		if bytes.Equal(c.counters[i].Key, c.counters[last].Key) {
			return i
		}
	}
	return -1
}

// dropLast takes the last counter back.
func (c *call) dropLast() {
	last := len(c.counters) - 1
	c.counters, c.verdicts = c.counters[:last], c.verdicts[:last]
}

// tighten makes the counter of an earlier rule hold for a later one too: as many calls and as large a burst as both allow.
// The rule with fewer calls is the one that callers are told of.
func (c *call) tighten(i int, later *asked) {
	earlier, both := *c.asked[i].limit, *later.limit
	count := eitherCounts(c.asked[i].count, later.count)
	if both.Algorithm == TokenBucket {
		both.Burst = min(earlier.atOnce(), later.limit.atOnce())
	}
	if earlier.Max < both.Max {
		both.Max = earlier.Max
	} else {
		c.asked[i] = *later
	}
	c.asked[i].count = count
	if prepared := c.limiter.limits.of(both); prepared.err == nil {
		c.counters[i].Limit, c.asked[i].limit = &prepared.compiled, &prepared.limit
	}
}

// eitherCounts is the Count of a charge that two rules share: it stays when one of them wants it to. nil counts every call.
func eitherCounts(a, b func(status int) bool) func(status int) bool {
	if a == nil || b == nil {
		return nil
	}
	return func(status int) bool { return a(status) || b(status) }
}
