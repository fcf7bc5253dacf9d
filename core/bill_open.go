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
	q := handleCall{handle: c.handle, own: c.own, subject: subject, n: estimate, charging: chargeBilled}
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
		return nil, wrongArgument(q.named.name, "estimate", q.n, "must be positive")
	}
	c := q.front.directs.open()
	defer q.front.directs.close(c)
	return c.openBill(ctx, q, d)
}

// openBill decides a call that check found right, and returns its bill, or nil if it is refused.
func (c *directCall) openBill(ctx context.Context, q *handleCall, d *Decision) (*Bill, error) {
	c.add(ctx, q, false)
	b := newBill(q)
	record := algorithm.OpenBill{Key: b.bill.Key, Span: q.bills.Expires.Microseconds()}
	fits := c.Open(ctx, record)
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
