package engine

import (
	"context"

	"github.com/accesslimit/accesslimit/core/internal/algorithm"
)

// Decide asks the store for verdicts on all counters, and charges all of them or none. It reports
// whether the cost fits: if not, nothing was charged, and Costly returns the rule.
func (c *Call) Decide(ctx context.Context) (fits bool) {
	if c.chargesNothing() {
		return c.fitsUncharged(ctx)
	}
	// Leased permits cannot be taken back from a call that another counter refuses, nor do they reach a
	// threshold.
	if len(c.counters) == 1 && !c.warns {
		c.counters[0].Lease = c.limits[0].Rule.Lease
	}
	c.engine.Store.Decide(ctx, c.counters, true, c.verdicts)
	return c.conclude(true)
}

// Look is like Decide, but charges nothing. It may repeat a remembered refusal.
func (c *Call) Look(ctx context.Context) (fits bool) {
	if c.engine.Refusals == nil {
		return c.Ask(ctx)
	}
	if c.chargesNothing() {
		return c.fitsUncharged(ctx)
	}
	c.engine.Refusals.Look(ctx, c.counters, c.verdicts)
	return c.conclude(false)
}

// Ask is like Look, but always asks the store.
func (c *Call) Ask(ctx context.Context) (fits bool) {
	if c.chargesNothing() {
		return c.fitsUncharged(ctx)
	}
	c.engine.Store.Decide(ctx, c.counters, false, c.verdicts)
	return c.conclude(false)
}

// DecideUpTo is like Decide, but charges as much of the cost as fits. It returns the amount, or 1
// if nothing fits. The call must have a single rule, and its cost must not exceed that rule's
// limits.
func (c *Call) DecideUpTo(ctx context.Context) (granted int64) {
	c.engine.Store.DecideUpTo(ctx, c.counters, c.verdicts)
	granted = c.counters[0].Cost
	c.conclude(true)
	return granted
}

// Reserve is like Decide, but takes the cost at the next turn of a bucket, if that comes within
// patience, in microseconds. The call must have one limit.
func (c *Call) Reserve(ctx context.Context, patience int64) (fits bool) {
	if c.chargesNothing() {
		return c.fitsUncharged(ctx)
	}
	c.verdicts[0] = c.engine.Turns.Reserve(ctx, &c.counters[0], patience)
	return c.conclude(true)
}

// Remembers reports whether refusals are remembered. Only then may Recall be called.
func (c *Call) Remembers() bool { return c.engine.Refusals != nil }

// Recall repeats a remembered refusal that holds for all calls with these counters, and reports
// whether there is one. It does not ask the store.
func (c *Call) Recall() bool {
	if c.costly.By != nil || !c.engine.Refusals.Recall(c.counters, c.verdicts) {
		return false
	}
	c.applyBans()
	return true
}

// Costly returns the first limit into which the cost of the call can never fit, or the zero Costly.
func (c *Call) Costly() Costly { return c.costly }

// chargesNothing reports whether the call has no counters, or a cost that can never fit.
func (c *Call) chargesNothing() bool { return c.costly.By != nil || len(c.counters) == 0 }

// fitsUncharged decides a call that chargesNothing. It reports whether the cost fits.
func (c *Call) fitsUncharged(ctx context.Context) bool {
	return c.costly.By == nil || c.askForBlock(ctx)
}

// askForBlock asks the store whether a block refuses a call whose cost can never fit. It drops the
// counters of rules that cannot have blocks, and charges nothing. It returns true if the call is not
// refused for its cost, and false if there is no block, or none is known and the store does not
// answer.
func (c *Call) askForBlock(ctx context.Context) (fits bool) {
	c.drop(func(at int) bool { return c.counters[at].Override == nil || c.counters[at].Lenient })
	costly := c.costly
	c.costly = Costly{}
	c.Look(ctx)
	if c.refusedByBlock() {
		return true
	}
	c.costly = costly
	return false
}

// conclude makes a decision from the store's verdicts.
func (c *Call) conclude(charging bool) (fits bool) {
	if c.asked > 0 && !c.obey() {
		return false
	}
	if c.hasCostly {
		c.exceedCostly()
	}
	if c.fit = c.allFit(); c.fit { // nearly always, and then there is nothing else to do
		c.passed = charging
		return true
	}
	c.anyNear = true // allFit has not looked at all limits
	c.applyBans()
	c.passed = charging && algorithm.Passes(c.counters, c.verdicts)
	c.reportFailures()
	return true
}

// allFit reports whether the store answered for all counters, and the call fits in each. It also notes
// whether one of them is nearly used up.
func (c *Call) allFit() bool {
	for i := range c.verdicts {
		v := &c.verdicts[i]
		if v.RetryAfter != 0 || v.Ended != nil || v.Failure() != nil {
			return false
		}
		c.anyNear = c.anyNear || isNearlyUsedUp(&c.counters[i], v) && !c.limits[i].IsBan
	}
	return true
}

// applyBans makes the first limit that a ban in force watches report the ban, and has the ban
// listed.
func (c *Call) applyBans() {
	for i := range c.limits {
		wait := c.verdicts[i].RetryAfter
		if !c.limits[i].IsBan || wait == 0 {
			continue
		}
		if c.verdicts[i].From == algorithm.FromStore {
			c.observer.Banned(i)
		}
		first := i
		if watched := c.counters[i].Watched; len(watched) > 0 {
			first = watched[0]
		}
		c.limits[first].Banned = true
		v := &c.verdicts[first]
		v.RetryAfter, v.Remaining = max(v.RetryAfter, wait), 0
	}
}

// reportFailures reports the rules that the store did not answer for, once for each.
func (c *Call) reportFailures() {
	for i := range c.limits {
		err := c.verdicts[i].Failure()
		if err == nil || i > 0 && c.limits[i-1].Applied == c.limits[i].Applied && c.verdicts[i-1].Failure() != nil {
			continue
		}
		c.observer.StoreFailed(c.limits[i].Applied, err)
	}
}

// CountsNothing reports whether no limit counts the call: it has none, or only bans, which let it pass.
func (c *Call) CountsNothing() bool {
	return len(c.limits) == 0 || c.limits[0].IsBan && c.bansPassed()
}

// bansPassed reports whether the call has only bans, and they let it pass.
func (c *Call) bansPassed() bool {
	for i := range c.limits {
		if !c.limits[i].Silent() {
			return false
		}
	}
	return c.fit
}

// OverLimit reports whether a counter refused.
func (c *Call) OverLimit() bool {
	for i := range c.verdicts {
		if c.verdicts[i].RetryAfter > 0 && !c.counters[i].Lenient {
			return true
		}
	}
	return false
}

// Ended returns the index of the first limit that the store did not answer for because the caller's
// own context ended, or -1.
func (c *Call) Ended() (at int) {
	for i := range c.verdicts {
		if c.verdicts[i].Ended != nil {
			return i
		}
	}
	return -1
}

// Outcome is what a limit decides about a call, and why.
type Outcome uint8

// The outcomes. A call passes by Allowed, SoftExceeded and StoreFailOpen only.
const (
	Allowed Outcome = iota
	LimitExceeded
	Banned
	Blocked
	SoftExceeded
	StoreFailOpen
	StoreFailClosed
)

// Outcome returns what the limit at i decides. See Source for the origin of the verdict.
func (c *Call) Outcome(i int) Outcome {
	a, v := &c.limits[i], &c.verdicts[i]
	switch {
	case v.Err == nil && v.RetryAfter == 0:
		return Allowed
	case v.Err != nil && c.counters[i].Refuses(v):
		return StoreFailClosed
	case v.Err != nil:
		return StoreFailOpen
	case a.Rule.Soft:
		return SoftExceeded
	case v.Blocked:
		return Blocked
	case a.Banned:
		return Banned
	default:
		return LimitExceeded
	}
}

// Source returns what decided about the limit at i.
func (c *Call) Source(i int) algorithm.Origin {
	if v := &c.verdicts[i]; v.Err == nil {
		return v.From
	}
	return algorithm.FromNobody
}

// ReportBans makes bans report themselves if the store did not answer for them, because no other
// limit reports them.
func (c *Call) ReportBans() {
	for i := range c.limits {
		if a, v := &c.limits[i], &c.verdicts[i]; a.IsBan && v.Err != nil && c.counters[i].Refuses(v) {
			a.Banned = true
		}
	}
}
