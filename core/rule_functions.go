package core

import (
	"fmt"
	"math"

	"github.com/accesslimit/accesslimit/core/internal/algorithm"
)

// prepare calls the functions of a rule, except those of costs and Note, for what the engine has to know of a
// call that takes so many permits.
func (c *call) prepare(a *appliedRule, cost int64) (err error) {
	in := &a.counted
	in.Cost = cost
	if cost == 0 && !a.named.marks.MayHave() {
		return nil
	}
	if in.Subject, err = c.findSubject(a); err != nil {
		return err
	}
	if cost > 0 {
		if a.rule.Plan == nil && a.rule.LimitFor == nil {
			in.Own = &a.own.counted
		} else if own := c.planned(a); own != nil {
			a.own, in.Own = own, &own.counted
		}
	}
	if a.named.marks.MayHave() {
		c.obey(c.Context(), a, c.ClientIP())
	}
	if terms := a.rule.terms; terms != nil && in.Counts() {
		in.Cost = terms.cut(in.Cost, in.Largest())
	}
	in.Personal = a.perUser()
	return nil
}

// findSubject returns the rule's subject, in memory that the call keeps.
func (c *call) findSubject(a *appliedRule) ([]byte, error) {
	from := len(c.subjects)
	switch {
	case c.subject != "":
		c.subjects = append(c.subjects, c.subject...)
	case a.rule.Key != nil:
		key, err := a.rule.Key(c)
		if err != nil {
			return nil, err
		}
		c.subjects = append(c.subjects, key...)
	case a.rule.NeedLogin:
		c.subjects = append(append(c.subjects, "user:"...), c.user...)
	}
	if len(c.subjects) == from {
		c.subjects = c.parts.clientIPs.AppendSubject(c.subjects, c.addressToCount())
	}
	return c.subjects[from:len(c.subjects):len(c.subjects)], nil
}

// cost returns what the call costs by the rule.
func (c *call) cost(a *appliedRule) int64 {
	if a.rule.price == nil {
		return 1
	}
	return c.askCost(a)
}

// askCost returns what the call costs by the rule's Cost or Estimate. It is a function of its own so that the compiler
// inlines cost.
func (c *call) askCost(a *appliedRule) int64 {
	c.unit = 0
	cost := a.rule.price(c)
	a.unit = c.unit
	if a.rule.terms != nil && a.rule.inHandler {
		cost = estimateFor(c.Context(), c.check, a.named.name, cost)
	}
	if cost < 0 {
		c.log.NegativeCost(a.named.name, cost)
		return 1
	}
	return c.permits(cost)
}

// planned returns the limit that holds for this caller in place of the rule's own, by Plan or
// LimitFor; nil if the caller is Unlimited. If the rule's function fails, the rule's own limit
// holds.
func (c *call) planned(a *appliedRule) *ruleLimit {
	q, err := c.plan(a)
	if err != nil {
		c.log.PlanFailed(a.named.name, err)
		return a.named.limits[0]
	}
	return q
}

func (c *call) plan(a *appliedRule) (*ruleLimit, error) {
	if a.rule.Plan != nil {
		return c.namedPlan(a)
	}
	limit, err := a.rule.LimitFor(c)
	if err != nil {
		return nil, err
	}
	return c.computed(a, limit)
}

// computed returns the limit that LimitFor returned, in the form that was prepared for the rule.
func (c *call) computed(a *appliedRule, limit Limit) (*ruleLimit, error) {
	own := a.named.limits[0]
	switch {
	case limit.unlimited():
		return nil, nil
	case limit == own.limit || limit == Limit{}:
		return own, nil
	case limit.Algorithm.properties().Slots && a.rule.inHandler:
		return nil, a.rule.noSlotsInHandler("LimitFor", limit)
	}
	if q, ok := a.named.computed.Get(limit); ok {
		return q, nil
	}
	return c.newPlan(a, limit)
}

// namedPlan returns the limit of the plan that the rule's Plan names.
func (c *call) namedPlan(a *appliedRule) (*ruleLimit, error) {
	name, err := a.rule.Plan(c)
	if err != nil {
		return nil, err
	}
	return a.named.plan(name)
}

// plan returns the limit of a plan, and the rule's own for "".
func (p *namedRule) plan(name string) (*ruleLimit, error) {
	if name == "" {
		return p.limits[0], nil
	}
	q, ok := p.plans[name]
	if !ok {
		return nil, fmt.Errorf("the rule's Plans have no plan %.64q", name)
	}
	return q, nil
}

// newPlan makes a limit that LimitFor has not returned before.
func (c *call) newPlan(a *appliedRule, limit Limit) (*ruleLimit, error) {
	prepared := c.parts.limits.of(limit)
	if prepared.err != nil {
		return nil, prepared.err
	}
	if wrong := a.rule.wrongPolicy(limit, &prepared.compiled); wrong != nil {
		return nil, wrong[0]
	}
	if a.rule.terms != nil && cannotBeSettled(limit.Algorithm.properties()) {
		return nil, a.rule.wrong("LimitFor", codeNotSettleable, limit, notSettleable)
	}
	return a.named.addComputed(prepared), nil
}

// CostBySize returns a function for Rule.Cost or Rule.Estimate by the length of the body: the number of units of that many bytes,
// rounded up, and 1 for a call without a body. A body that can never fit gets 413 (Content Too
// Large).
//
// If the length is not known before the body is read, as in chunks, gRPC or [Check.ForwardAuth], the call costs as
// much as the smallest of the rule's limits lets through at once. So only one such call passes.
// CostBySize panics if unit is less than 1.
func CostBySize(unit int64) func(Request) int {
	must(unit >= 1, "CostBySize needs a unit of at least one byte")
	return func(r Request) int {
		size := r.Size()
		if c, ok := r.(*call); ok {
			c.unit = unit
		}
		if size < 0 {
			return unknownSize
		}
		return int(max(1, min((size-1)/unit+1, largeSize)))
	}
}

// The costs that CostBySize computes for a body of unknown length, and for one of so many units that
// it never fits, though on 32 bits a limit may be as large.
const (
	unknownSize = math.MaxInt
	largeSize   = unknownSize - 1
)

// permits returns what a rule's Cost or Estimate returned, as counters take it. Only a body of unknown length
// costs algorithm.LargestCost, for which unknownSize stands: an int may be smaller.
func (c *call) permits(cost int) int64 {
	switch {
	case c.unit > 0 && cost == unknownSize:
		return algorithm.LargestCost
	case c.unit > 0 && cost == largeSize:
		return algorithm.LargestCost - 1
	}
	return min(int64(cost), algorithm.LargestCost-1)
}
