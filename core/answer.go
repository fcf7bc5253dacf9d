package core

import (
	"context"

	"github.com/accesslimit/accesslimit/core/internal/engine"
	"github.com/accesslimit/accesslimit/core/internal/inflight"
)

// completion returns what an allowed call has to give back later, or nil.
func (c *call) completion() (u *inflight.Completion) {
	for i := range c.Len() {
		if c.ruleOf(i).rule.Count == nil && c.Holder() == "" { // nearly always
			continue
		}
		counter, count := c.Counter(i), c.counts(i)
		if slots := counter.Limit.Properties().Slots; !slots && (count == nil || c.estimateAt(i) >= 0) {
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
	if c.settles {
		u = c.withEstimates(u)
	}
	return u
}

// withEstimates returns the call's completion with the estimates that its handler can settle. That is u,
// or a new one if u is nil.
func (c *call) withEstimates(u *inflight.Completion) *inflight.Completion {
	if u == nil {
		u = c.newCompletion()
	}
	e := c.parts.inFlight.NewEstimates()
	for at := range c.rules {
		if a := &c.rules[at]; a.rule.terms != nil {
			e.AddRule(a.named.name, a.rule.terms.MaxDebt, a.named.tally.Costs())
			c.addEstimates(e, at)
		}
	}
	u.Settles(e)
	return u
}

// addEstimates adds what the rule at an index charged.
func (c *call) addEstimates(e *inflight.Estimates, at int) {
	for i := range c.Len() {
		counter := c.Counter(i)
		if !c.Passed() || c.estimateAt(i) != at || counter.Limit.Properties().Slots {
			continue
		}
		if charge := counter.Charged(c.Verdict(i)); charge.Cost > 0 {
			e.Add(charge, c.plainCost(i), c.counts(i), c.chargedLater(i))
		}
	}
}

// plainCost returns the largest cost that is no estimate among those of the rules that have the
// counter at i.
func (c *call) plainCost(i int) (cost int64) {
	a := c.Limit(i)
	for _, of := range append([]*engine.Applied{a.Applied}, a.Merged...) {
		if c.rules[of.At].rule.terms == nil {
			cost = max(cost, of.Cost)
		}
	}
	return cost
}

// letSettle lets the handler of a call that goes on settle what was charged. It takes and returns the
// context and the completion of an Answer. Nothing runs the handler that a Check is part of, so
// there the context is already the handler's.
func (c *call) letSettle(ctx context.Context, u *inflight.Completion) (context.Context, *inflight.Completion) {
	if u.Estimates() == nil { // no limit counted the call
		u = c.withEstimates(u)
	}
	if c.rules[0].rule.inHandler {
		if s := settleableFor(c.Context(), c.check); s != nil {
			s.add(u.Estimates())
		}
		return ctx, nil
	}
	if ctx == nil {
		ctx = c.Context()
	}
	s := &settleable{Context: ctx, outer: settleableIn(ctx), parts: c.parts}
	s.add(u.Estimates())
	return s, u
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
