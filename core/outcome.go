package core

import "github.com/accesslimit/accesslimit/core/internal/inflight"

// completion returns what an allowed call has to give back later, or nil.
func (c *call) completion() (u *inflight.Completion) {
	for i := range c.limits {
		counter, count := &c.counters[i], c.limits[i].count
		if count == nil && !counter.Limit.Properties().Slots {
			continue
		}
		charge := counter.Charged(&c.verdicts[i])
		if charge.Cost == 0 {
			continue
		}
		if u == nil {
			options := &c.limiter.options
			u = c.limiter.inFlight.NewCompletion(c.Context(), c.Method() == "", options.Expose || options.OnDecision != nil || c.hasSoft)
		}
		u.Add(charge, c.id+uint64(i), count)
	}
	return u
}

// abandon ends a call as a panic in its handler would. It is for a call that was not decided,
// because a function of the service owner's panicked.
func (c *call) abandon() {
	if c.passed { // otherwise nothing was charged
		c.completion().Abandon()
	}
}
