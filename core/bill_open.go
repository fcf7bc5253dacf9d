package core

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"fmt"
	"math"
	"time"

	"github.com/accesslimit/accesslimit/core/internal/algorithm"
	"github.com/accesslimit/accesslimit/core/internal/rediskey"
	"github.com/accesslimit/accesslimit/core/internal/refund"
)

// Bills are the terms of a counter's costs that are known afterwards. The zero Bills have the
// defaults.
type Bills struct {
	// Expires is the time in which a bill can be settled: 1 s to 366 days, by default an hour. A bill
	// that is not settled by then stays at what it was charged.
	Expires time.Duration
	// MaxDebt bounds the debt of each limit, as a multiple of its Max, or of the Burst of a
	// TokenBucket: up to 10, by default 1.
	MaxDebt float64
	// MaxEstimate is the largest part of the counter's smallest limit that [Counter.Open] charges, up
	// to 1: a larger estimate is cut to it. Set it, to 0.25 perhaps, if estimates are guesses, so that
	// a wrong one neither fails nor keeps everyone else out. By default nothing is cut, and an
	// estimate above a limit is [ErrCostExceedsLimit].
	MaxEstimate float64
}

// filled returns the terms with their defaults filled in.
func (b Bills) filled() Bills {
	if b.Expires == 0 {
		b.Expires = time.Hour
	}
	if b.MaxDebt == 0 {
		b.MaxDebt = 1
	}
	return b
}

// wrong returns what is wrong with filled terms, or nil.
func (b Bills) wrong(name string) error {
	switch {
	case b.Expires < time.Second || b.Expires > algorithm.MaxWindow*time.Microsecond:
		return &RuleError{Rule: name, Field: "Expires", Value: b.Expires, Why: "must be 1s to 8784h"}
	case !(b.MaxDebt > 0 && b.MaxDebt <= 10): // also for NaN
		return &RuleError{Rule: name, Field: "MaxDebt", Value: b.MaxDebt, Why: "must be more than 0, and at most 10"}
	case !(b.MaxEstimate >= 0 && b.MaxEstimate <= 1):
		return &RuleError{Rule: name, Field: "MaxEstimate", Value: b.MaxEstimate, Why: "must be 0 to 1"}
	}
	return nil
}

// WithBills returns the counter with other terms for [Counter.Open] and [Counter.Charge]. The error of
// wrong terms is returned by the methods of the Counter.
func (c Counter) WithBills(b Bills) Counter {
	if c.handle != nil {
		changed := *c.handle
		changed.bills = b.filled()
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
// The estimate must be positive. What was charged is given back by the bill alone: [Limiter.Refund]
// of the Decision is an error. The bill is kept with the subject's counters in the store for
// [Bills].Expires. If the call is allowed without being counted there, as for an [Unlimited] subject
// or by a [StorePolicy], then there is nothing to settle, and the methods of the bill do nothing.
//
// Errors are those of [Counter]. A limit by SlidingLog is a *[RuleError]. Do not use a [Pacer] with the
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
	if share := q.bills.MaxEstimate; share > 0 && !q.unlimited() {
		most := float64(q.counted.LargestCost(&q.countedAt(0).counted))
		q.n = min(q.n, int(max(1, math.Floor(most*share))))
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
	b := &Bill{front: q.front, name: q.named.name, subject: q.subject, id: base64.RawURLEncoding.EncodeToString(id[:])}
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
