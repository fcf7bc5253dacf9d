package linearizable

import (
	"context"
	"math/rand/v2"
)

// opened is a bill that any process can change, by its token.
type opened struct {
	call
	token string
}

// open opens a bill.
func (c *client) open(ctx context.Context, q call) {
	var token string
	c.record(q, func() (outcome, error) {
		bill, d, err := c.counter().Open(ctx, q.subject, q.n)
		token = bill.Token()
		return outcome{}.of(d), err
	})
	if token != "" {
		c.mutex.Lock()
		defer c.mutex.Unlock()
		c.bills = append(c.bills, opened{q, token})
	}
}

// change adds to a bill of any process, or settles it, perhaps a second time.
func (c *client) change(ctx context.Context, how action) {
	q, ok := c.anyBill()
	if !ok {
		return
	}
	bill, err := c.counter().Resume(q.token)
	if err != nil {
		c.t.Error(err)
		return
	}
	do := bill.Settle
	if how == add {
		do = bill.Add
	}
	q.do, q.n = how, rand.N(8)
	if how == add {
		q.n++ // adding nothing asks nobody
	}
	c.record(q.call, func() (o outcome, err error) {
		o.allowed = true
		return o, do(ctx, q.n)
	})
}

func (c *client) anyBill() (q opened, ok bool) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if len(c.bills) == 0 {
		return q, false
	}
	return c.bills[rand.N(len(c.bills))], true
}
