package core

import "github.com/accesslimit/accesslimit/core/internal/inflight"

// completion returns what an allowed call has to give back later, or nil.
func (c *call) completion() (u *inflight.Completion) {
	for i := range c.Len() {
		if c.ruleOf(i).rule.Count == nil && c.Holder() == "" { // nearly always
			continue
		}
		counter, count := c.Counter(i), c.counts(i)
		if count == nil && !counter.Limit.Properties().Slots {
			continue
		}
		charge := counter.Charged(c.Verdict(i))
		if charge.Cost == 0 {
			continue
		}
		if u == nil {
			u = c.newCompletion()
		}
		u.Add(charge, c.ID()+uint64(i), count)
	}
	return u
}

func (c *call) newCompletion() *inflight.Completion {
	options := &c.parts.options
	shown := options.Expose || options.OnDecision != nil || c.HasSoft()
	return c.parts.inFlight.NewCompletion(c.Context(), c.Method() == "", shown)
}

// counts returns the Count of the limit at i. If several rules have its counter, the call counts if
// one of them says so. nil counts every call.
func (c *call) counts(i int) func(status int) bool {
	a := c.Limit(i)
	if a.IsBan {
		return nil
	}
	count := c.rules[a.At].rule.Count
	for _, other := range a.Merged {
		count = eitherCounts(count, c.rules[other.At].rule.Count)
	}
	return count
}

// eitherCounts returns the Count of a charge that two rules share.
func eitherCounts(a, b func(status int) bool) func(status int) bool {
	if a == nil || b == nil {
		return nil
	}
	return func(status int) bool { return a(status) || b(status) }
}

// abandon ends a call as a panic in its handler would. It is for a call that was not decided,
// because a function of the service owner's panicked, such as OnDecision after the charge.
func (c *call) abandon() {
	if c.Passed() { // otherwise this call charged nothing
		c.completion().Abandon()
	}
}
