package engine

import (
	"context"

	"github.com/accesslimit/accesslimit/core/internal/algorithm"
)

// Charge is like Decide, but charges the cost even if it does not fit. share bounds the debt: see
// algorithm.Limit.Debt. It returns how much of the cost was not charged to a limit because of that
// bound, or 0 if all of it was charged. The call must have a single rule.
func (c *Call) Charge(ctx context.Context, share float64) (above int64) {
	if !c.mustAsk() {
		c.decideUnasked(ctx, true)
		return 0
	}
	c.op.Share = share
	c.ask(ctx, algorithm.InDebt)
	if c.passed {
		for i := range c.op.Counters {
			if c.op.Verdicts[i].Failure() == nil {
				above = max(above, c.op.Counters[i].Cost-c.op.Verdicts[i].Taken)
			}
		}
	}
	return above
}

// Open is like Decide, and records a bill if the call is charged. The call must have a single rule.
func (c *Call) Open(ctx context.Context, b algorithm.OpenBill) (fits bool) {
	if !c.mustAsk() {
		return c.decideUnasked(ctx, true)
	}
	c.op.Bill = &b
	return c.ask(ctx, algorithm.AllOrNone)
}

// Charges returns what the call was charged by the store, on each counter. It returns nil if the store
// charged nothing.
func (c *Call) Charges() (charges []algorithm.Charge) {
	for i := range c.op.Counters {
		charge := c.op.Counters[i].Charged(&c.op.Verdicts[i])
		if !c.passed || charge.Cost == 0 || c.op.Verdicts[i].From != algorithm.FromStore {
			return nil
		}
		charge.Key = append([]byte(nil), charge.Key...)
		charges = append(charges, charge)
	}
	return charges
}
