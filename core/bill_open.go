package core

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"fmt"
	"strings"

	"github.com/accesslimit/accesslimit/core/internal/algorithm"
	"github.com/accesslimit/accesslimit/core/internal/rediskey"
	"github.com/accesslimit/accesslimit/core/internal/refund"
)

// Charge charges n permits to all limits of the counter, whether they fit or not. It is for costs that
// are known only afterwards, such as the tokens that a language model has used:
//
//	d, err := tokens.Charge(ctx, "tenant:acme", used)
//
// The part that does not fit becomes debt: later calls are refused until it has come back, and their
// RetryAfter says when. The windows of FixedWindow and CalendarWindow forget debt at their end,
// SlidingWindow forgets it when its span has passed, and a TokenBucket first refills what it owes. In
// debt, Remaining is 0.
//
// The debt of a limit is at most its Max, or the Burst of a TokenBucket, unless [Counter.WithBills]
// says otherwise. No limit is charged beyond that bound. If the cost exceeds one, the error is
// [ErrDebtExceeded], and the Decision is valid all the same. Stats.DebtExceeded counts it.
//
// Allowed is false only if the subject is [Blocked], or if the policy of [Counter.WithStorePolicy]
// says so while Redis does not answer; nothing is charged then. If n is 0, nothing is charged. Other
// errors are those of [Counter]. A limit by SlidingLog is a *[RuleError], and so is one of a rule with a
// Lease and the counter's name.
func (c Counter) Charge(ctx context.Context, subject string, n int) (d Decision, err error) {
	q := handleCall{handle: c.handle, own: c.own, subject: subject, n: n, charge: true, inDebt: true}
	if err = q.ask(ctx, &d); err != nil || q.above == 0 {
		return d, err
	}
	q.named.tally.Costs().Exceed(uint64(q.above))
	return d, fmt.Errorf("%w: %d of %d were not charged", ErrDebtExceeded, q.above, n)
}

// WithBills returns the counter with other terms for [Counter.Open] and [Counter.Charge]. The error of
// wrong terms is returned by the methods of the Counter.
func (c Counter) WithBills(terms BillTerms) Counter {
	if c.handle != nil {
		changed := *c.handle
		changed.bills = terms.filled()
		if err := changed.bills.wrong(changed.named.name); err != nil {
			changed.wrong, changed.single = err, nil
		}
		c.handle = &changed
	}
	return c
}

// Open charges an estimate, like [Counter.AllowN], and opens a bill for a cost that is known only
// afterwards:
//
//	bill, d, err := tokens.Open(ctx, "tenant:acme", estimate)
//	if err != nil || !d.Allowed {
//		return // nothing was charged, and bill is nil
//	}
//	...
//	err = bill.Settle(ctx, used)
//
// The estimate must be positive. Only the bill gives back what was charged: [Limiter.Refund]
// of the Decision is an error. The bill is kept with the subject's counters in the store for
// [BillTerms].Expires. If the call is allowed without being counted there, as for an [Unlimited] subject
// or by a [StorePolicy], then there is nothing to settle, and the methods of the bill do nothing.
//
// Errors are those of [Counter.Charge], without the debt. Do not use a [Pacer] with the
// same name and limit: what a bill gives back comes before turns that were handed out.
func (c Counter) Open(ctx context.Context, subject string, estimate int) (bill *Bill, d Decision, err error) {
	q := handleCall{handle: c.handle, own: c.own, subject: subject, n: estimate, charge: true, opens: true}
	bill, err = q.open(ctx, &d)
	if err == nil {
		q.front.options.reportDirect(ctx, &d, func() { _ = bill.Cancel(ctx) })
	}
	return bill, d, err
}

// open is [Counter.Open] without the report.
func (q *handleCall) open(ctx context.Context, d *Decision) (*Bill, error) {
	if err := q.check(ctx); err != nil {
		return nil, err
	}
	if q.n < 1 {
		return nil, &RuleError{Rule: q.named.name, Field: "estimate", Value: q.n, Why: "must be positive"}
	}
	c := q.front.directs.open()
	defer q.front.directs.close(c)
	return c.openBill(ctx, q, d)
}

// openBill decides a call that check found right, and returns its bill, or nil if it is refused.
func (c *directCall) openBill(ctx context.Context, q *handleCall, d *Decision) (*Bill, error) {
	if !q.unlimited() {
		q.n = int(q.bills.cut(int64(q.n), q.counted.LargestCost(&q.countedAt(0).counted)))
	}
	c.add(q, false)
	b := newBill(q)
	fits := c.Open(ctx, algorithm.OpenBill{Key: b.bill.Key, Span: q.bills.Expires.Microseconds()})
	if err := c.answer(d, q, fits); err != nil || !d.Allowed {
		return nil, err
	}
	b.bill.Charges = c.Charges()
	for i := range b.bill.Charges {
		b.bill.Charges[i].InDebt = true
		b.limits = append(b.limits, *c.limitAt(i))
	}
	if len(b.bill.Charges) > 0 {
		b.costs.Open(b.bill.Estimate())
	}
	d.receipt = refund.Receipt{}
	for i := range d.All {
		d.All[i].receipt = refund.Receipt{}
	}
	return b, nil
}

// newBill returns a bill that has charged nothing.
func newBill(q *handleCall) *Bill {
	var id [16]byte
	rand.Read(id[:]) // it never fails
	b := &Bill{front: q.front, costs: q.named.tally.Costs(), name: q.named.name, subject: strings.Clone(q.subject), id: base64.RawURLEncoding.EncodeToString(id[:])}
	b.bill.Share, b.bill.Key = q.bills.MaxDebt, b.key()
	return b
}

// key returns the key of the bill's record. In this process, the keys of counters share their ends, so
// there a bill stands under its ID.
func (b *Bill) key() []byte {
	tail := rediskey.BillTail(b.name)
	if b.front.Memory != nil {
		return rediskey.Append(nil, "", b.id, tail)
	}
	return rediskey.Append(nil, b.front.KeyHead, b.subject, fmt.Sprintf("%s:%s", tail, b.id))
}
