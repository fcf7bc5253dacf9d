package core

import (
	"context"
	"fmt"

	"github.com/accesslimit/accesslimit/core/internal/algorithm"
)

// Charge charges n permits to all limits of the counter, whether they fit or not. It is for costs that
// are known only afterwards, such as the tokens that a language model has used:
//
//	d, err := tokens.Charge(ctx, "tenant:acme", used)
//
// What does not fit becomes debt: later calls are refused until it has come back, and their RetryAfter
// says when. The windows of FixedWindow and CalendarWindow forget debt at their end, SlidingWindow
// forgets it when its span has passed, and a TokenBucket refills first what it owes. In debt,
// Remaining is 0.
//
// The debt of a limit is at most its Max, or the Burst of a TokenBucket, unless [Counter.WithBills]
// says otherwise. What exceeds that is charged to no limit that it exceeds; then the error is
// [ErrDebtExceeded], and the Decision is valid all the same. Stats.DebtExceeded counts it.
//
// Allowed is false only if the subject is [Blocked], or if the policy of [Counter.WithStorePolicy]
// says so while Redis does not answer; nothing is charged then. If n is 0, nothing is charged. Other
// errors are those of [Counter]. A limit by SlidingLog is a *[RuleError].
func (c Counter) Charge(ctx context.Context, subject string, n int) (d Decision, err error) {
	q := handleCall{handle: c.handle, own: c.own, subject: subject, n: n, charge: true, inDebt: true}
	if err = q.ask(ctx, &d); err != nil || q.above == 0 {
		return d, err
	}
	q.front.debtExceeded.Add(uint64(q.above))
	return d, fmt.Errorf("%w: %d of %d were not charged", ErrDebtExceeded, q.above, n)
}

// chargeInDebt charges the counters of a call whether its cost fits or not.
func (c *directCall) chargeInDebt(ctx context.Context, q *handleCall) {
	q.above = int(c.Charge(ctx, q.bills.MaxDebt))
	if q.above > 0 {
		q.above += q.n - int(c.rules[0].counted.Cost)
	}
}

// checkDebt returns a *RuleError if one of the limits cannot be in debt.
func (q *handleCall) checkDebt() error {
	for i := range q.limits {
		limit := q.limit(i)
		if limit.limit != Unlimited && !limit.compiled.CanBeInDebt() {
			return &RuleError{
				Rule: q.named.name, Field: "Limit", Value: limit.limit,
				Why: "cannot be charged with what does not fit: use SlidingWindow, FixedWindow, CalendarWindow or TokenBucket",
			}
		}
	}
	return nil
}

// largestCharge returns the part of a cost that counters are asked to charge: more than any of them
// can.
func largestCharge(n int) int64 { return min(int64(n), algorithm.MaxInUse+1) }
