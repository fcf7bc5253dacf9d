package engine

import (
	"context"

	"github.com/accesslimit/accesslimit/core/internal/algorithm"
	"github.com/accesslimit/accesslimit/core/internal/marks"
)

// Decide asks the store for verdicts on all counters, and charges all of them or none. It reports
// whether the cost fits: if not, nothing was charged, and Costly returns the rule.
func (c *Call) Decide(ctx context.Context) (fits bool) {
	if !c.mustAsk() {
		return c.decideUnasked(ctx, true)
	}
	// Leased permits cannot be taken back from a call that another counter refuses, nor do they reach a
	// threshold. The limits of a mark may have an algorithm that cannot be leased.
	if len(c.op.Counters) == 1 && !c.warns && c.limits[0].Instead == nil {
		c.op.Counters[0].Lease = c.limits[0].Rule.Lease
	}
	return c.ask(ctx, algorithm.AllOrNone)
}

// ask asks the store, and makes a decision from its verdicts.
func (c *Call) ask(ctx context.Context, m algorithm.Mode) (fits bool) {
	restore := c.order()
	c.op.Mode = m
	c.engine.Store.Do(ctx, &c.op)
	restore()
	return c.conclude(m != algorithm.Looks)
}

// Look is like Decide, but charges nothing. It may repeat a remembered refusal.
func (c *Call) Look(ctx context.Context) (fits bool) {
	c.op.MayRecall = true
	fits = c.Ask(ctx)
	c.op.MayRecall = false
	return fits
}

// Ask is like Look, but always asks the store.
func (c *Call) Ask(ctx context.Context) (fits bool) {
	if !c.mustAsk() {
		return c.decideUnasked(ctx, false)
	}
	return c.ask(ctx, algorithm.Looks)
}

// DecideUpTo is like Decide, but charges as much of the cost as fits. It returns the amount, or 1
// if nothing fits. The call must have a single rule that Counts it, and its cost must not exceed that
// rule's limits.
func (c *Call) DecideUpTo(ctx context.Context) (granted int64) {
	c.ask(ctx, algorithm.UpTo)
	return c.op.Counters[0].Cost
}

// Reserve is like Decide, but takes the cost at the next turn of a bucket, if that comes within
// patience, in microseconds. The call must have one limit.
func (c *Call) Reserve(ctx context.Context, patience int64) (fits bool) {
	if !c.mustAsk() {
		return c.decideUnasked(ctx, true)
	}
	c.op.Mode, c.op.Patience = algorithm.InTurn, patience
	c.engine.Turns.Do(ctx, &c.op)
	return c.conclude(true)
}

// Remembers reports whether refusals are remembered. Only then may Recall be called.
func (c *Call) Remembers() bool { return c.engine.Refusals != nil }

// Recall repeats a remembered refusal that holds for all calls with these counters, and reports
// whether there is one. It does not ask the store.
func (c *Call) Recall() bool {
	if c.refused {
		return c.decideUnasked(context.Background(), true) // which asks nobody
	}
	c.charging = true
	c.op.Mode = algorithm.AllOrNone
	return c.costly.By == nil && c.engine.Refusals.Recall(&c.op)
}

// Fail makes the call one that the store did not answer in time, because its time was spent before.
func (c *Call) Fail(err error) { c.failed = err }

// Counts reports whether the store is asked: there are counters, no mark refuses the call, its cost can
// fit, and there is time left.
func (c *Call) Counts() bool { return c.mustAsk() }

// Costly returns the first limit into which the cost of the call can never fit, or the zero Costly.
func (c *Call) Costly() Costly { return c.costly }

// mustAsk reports whether only the store can decide the call: it has counters, no mark refuses it, its
// cost can fit, and there is time left.
func (c *Call) mustAsk() bool {
	return !c.refused && c.costly.By == nil && len(c.op.Counters) > 0 && c.failed == nil
}

// decideUnasked decides a call about which the store is not asked. It reports whether the cost fits; a
// block or a ban goes before that. Only these are told then.
func (c *Call) decideUnasked(ctx context.Context, charging bool) (fits bool) {
	switch {
	case c.refused:
		c.op.Counters, c.op.Verdicts, c.limits = c.op.Counters[:0], c.op.Verdicts[:0], c.limits[:0]
	case c.costly.By != nil:
		return false
	}
	for i := range c.op.Verdicts {
		c.op.Verdicts[i] = algorithm.Verdict{Err: c.failed}
	}
	if c.failed != nil && c.engine.StandIn != nil {
		restore := c.order()
		if c.op.Mode = algorithm.Looks; charging {
			c.op.Mode = algorithm.AllOrNone
		}
		c.engine.StandIn(ctx, &c.op)
		restore()
	}
	counts := len(c.op.Counters) > 0
	fits = c.conclude(charging)
	c.passed = c.passed && counts
	return fits
}

// conclude makes a decision from the store's verdicts.
func (c *Call) conclude(charging bool) (fits bool) {
	c.charging = charging
	for _, a := range c.marked {
		if a.Rule.Soft != c.refused {
			c.addMark(a)
		}
	}
	if c.hasCostly {
		c.exceedCostly()
	}
	if c.fit = c.allFit(); c.fit { // nearly always, and then there is nothing else to do
		c.passed = charging
		return true
	}
	c.anyNear = true // allFit has not looked at all limits
	c.passed = charging && algorithm.Passes(c.op.Counters, c.op.Verdicts)
	c.reportFailures()
	return true
}

// addMark adds the mark that refuses the call by a rule, as a limit without a counter.
func (c *Call) addMark(a *Applied) {
	counter := c.addCounter(a, a.Rule.Limits[0].Compiled, 0)
	if counter.Behind = 0; a.Rule.Soft {
		counter.Behind = uint16(len(c.op.Counters))
	}
	c.op.Verdicts[len(c.op.Verdicts)-1] = algorithm.Verdict{RetryAfter: a.Lasts, From: algorithm.FromMark}
	c.limits = append(c.limits, CallLimit{Applied: a, Limit: a.Rule.Limits[0], IsMark: true})
}

// allFit reports whether the store answered for all counters, and the call fits in each. It also notes
// whether one of them is nearly used up.
func (c *Call) allFit() bool {
	for i := range c.op.Verdicts {
		v := &c.op.Verdicts[i]
		if v.RetryAfter != 0 || v.Ended != nil || v.Failure() != nil {
			return false
		}
		c.anyNear = c.anyNear || isNearlyUsedUp(&c.op.Counters[i], v)
	}
	return true
}

// reportFailures reports the rules that the store did not answer for, once for each.
func (c *Call) reportFailures() {
	for i := range c.limits {
		err := c.op.Verdicts[i].Failure()
		if err == nil || i > 0 && c.limits[i-1].Applied == c.limits[i].Applied && c.op.Verdicts[i-1].Failure() != nil {
			continue
		}
		c.observer.StoreFailed(c.limits[i].Applied, err)
	}
}

// CountsNothing reports whether no limit counts the call, and no mark refuses it.
func (c *Call) CountsNothing() bool { return len(c.limits) == 0 }

// IsMarked reports whether a mark refuses the call.
func (c *Call) IsMarked() bool { return c.refused }

// OverLimit reports whether a counter or a mark refused.
func (c *Call) OverLimit() bool {
	for i := range c.op.Verdicts {
		if c.op.Verdicts[i].RetryAfter > 0 && c.op.Counters[i].Behind == 0 {
			return true
		}
	}
	return false
}

// Ended returns the index of the first limit that the store did not answer for because the caller's
// own context ended, or -1.
func (c *Call) Ended() (at int) {
	for i := range c.op.Verdicts {
		if c.op.Verdicts[i].Ended != nil {
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
	a, v := &c.limits[i], &c.op.Verdicts[i]
	switch {
	case v.Err == nil && v.RetryAfter == 0:
		return Allowed
	case v.Err != nil && c.op.Counters[i].Refuses(v):
		return StoreFailClosed
	case v.Err != nil:
		return StoreFailOpen
	case a.Rule.Soft:
		return SoftExceeded
	case a.IsMark && a.Mark.Kind == marks.Blocked:
		return Blocked
	case a.IsMark:
		return Banned
	default:
		return LimitExceeded
	}
}

// Source returns what decided about the limit at i.
func (c *Call) Source(i int) algorithm.Origin {
	if v := &c.op.Verdicts[i]; v.Err == nil {
		return v.From
	}
	return algorithm.FromNobody
}
