package promise

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/accesslimit/accesslimit/core"
)

// BillsAreExact: a call whose cost is known afterwards is charged an estimate, and then what it used,
// once, whichever processes settle it. Settled and open costs in force never exceed a limit and its
// debt.
func BillsAreExact(t *testing.T, e Engine) {
	l := e.newLab(t)
	l.eachLimit(t, "in time", func(c counter, f facts) {
		if f.debts {
			c.billsInTime(f)
		} else if _, _, err := c.open(1); !isRuleError(err) {
			t.Errorf("%v, want a RuleError", err)
		}
	})
	l.eachLimit(t, "in a handler", func(c counter, f facts) {
		if f.debts {
			c.settledLate(f)
		}
	})
	l.eachLimit(t, "move no window", func(c counter, f facts) {
		if f.Algorithm == core.FixedWindow {
			c.billsMoveNoWindow()
		}
	})
	eachAlgorithm(t, func(t *testing.T, f facts) {
		if !f.debts {
			return
		}
		t.Run("expired", func(t *testing.T) { l.onLimit(t, f.lasting(10), f, counter.billsExpire) })
		if f.Algorithm != core.TokenBucket { // TestBillsOfBucketsAreExact of internal/algorithm has its model
			t.Run("in any order", func(t *testing.T) { l.billsInAnyOrder(t, f) })
		}
		t.Run("together", func(t *testing.T) { settledTogether(t, e.limiters(t, 3), f) })
		t.Run("bounded", func(t *testing.T) { billsBounded(t, e.limiters(t, 3), f) })
		if !e.inProcess() {
			t.Run("the answer is lost", func(t *testing.T) { settledWithoutAnswer(t, e, f) })
		}
	})
}

// expires is the BillTerms.Expires of this file.
const expires = 90 * time.Minute

func (c counter) billing() core.Counter {
	return c.limiter.MustCounter(c.name, c.limit).WithBills(core.BillTerms{Expires: expires})
}

// open opens a bill.
func (c counter) open(estimate int) (*core.Bill, core.Decision, error) {
	return c.billing().Open(context.Background(), c.subject, estimate)
}

// mustOpen opens a bill, and returns it as another process knows it.
func (c counter) mustOpen(estimate int) *core.Bill {
	c.t.Helper()
	bill, d, err := c.open(estimate)
	if err != nil || !d.Allowed {
		c.t.Fatalf("%v: %+v, %v", c.limit, d, err)
	}
	if c.another != nil {
		c.limiter = c.another()
	}
	bill, err = c.billing().Resume(bill.Token())
	if err != nil {
		c.t.Fatal(err)
	}
	return bill
}

// settle settles a bill.
func (c counter) settle(bill *core.Bill, used int, want error) {
	c.t.Helper()
	if err := bill.Settle(context.Background(), used); !errors.Is(err, want) {
		c.t.Errorf("%v: settled at %d: %v, want %v", c.limit, used, err, want)
	}
}

// billsInTime settles a bill at once, in debt, one below its estimate after everything has come back, one above
// it then, and one after it has expired.
func (c counter) billsInTime(f facts) {
	most, over := atOnce(c.limit), f.full(c.limit)+f.lives(c.limit)
	inDebt := c.mustOpen(most)
	if _, err := c.owe(1); err != nil {
		c.t.Error(err)
	}
	c.settle(inDebt, 0, nil)
	c.wantLeft(most - 1)

	time.Sleep(over)
	below := c.mustOpen(1)
	time.Sleep(over)
	c.mustTake(most)
	c.settle(below, 0, nil)
	c.limiter = c.another()
	c.mustRefuse(1)

	time.Sleep(over)
	above := c.mustOpen(1)
	time.Sleep(over)
	c.settle(above, most, nil)
	c.wantLeft(1)

	last := c.mustOpen(1)
	time.Sleep(over)
	expired := c.mustOpen(1)
	time.Sleep(expires - over - time.Microsecond)
	c.settle(last, 1, nil)
	time.Sleep(over + time.Microsecond)
	c.settle(expired, most, core.ErrBillUnknown)
	c.settle(last, 1, core.ErrBillUnknown)
	c.wantLeft(most)
}

// billsExpire opens a bill that nobody settles. It stays at what it was charged: nothing is given back,
// neither when it expires nor later.
func (c counter) billsExpire(facts) {
	bill := c.mustOpen(3)
	if err := bill.Add(context.Background(), 1); err != nil {
		c.t.Error(err)
	}
	time.Sleep(expires)
	c.wantLeft(6)
	c.settle(bill, 0, core.ErrBillUnknown)
	c.wantLeft(6)
}

// billsMoveNoWindow changes and settles a bill in the middle of a window, which ends when it would have
// ended without.
func (c counter) billsMoveNoWindow() {
	most, half := atOnce(c.limit), (c.limit.Window / 2).Truncate(time.Microsecond)
	bill := c.mustOpen(1)
	time.Sleep(half)
	if err := bill.Add(context.Background(), most); err != nil {
		c.t.Error(err)
	}
	c.settle(bill, most, nil)
	if d := c.peek(); d.ResetAfter != c.limit.Window-half {
		c.t.Errorf("%v: the window ends in %v, want %v", c.limit, d.ResetAfter, c.limit.Window-half)
	}
	time.Sleep(c.limit.Window - half)
	c.wantLeft(most)
}

// settledTogether has three processes open, add to and settle bills at once, each bill at two numbers
// at once. Then the counter holds what the settled ones used, and what the others were charged.
func settledTogether(t *testing.T, limiters []*core.Limiter, f facts) {
	c := counter{t: t, limiter: limiters[0], name: "name", subject: "subject", limit: f.lasting(10_000)}
	var used atomic.Int64
	together(30, func(i int) {
		c := c
		c.limiter = limiters[i%3]
		for range 4 {
			bill := c.mustOpen(5)
			if err := bill.Add(context.Background(), 2); err != nil {
				t.Error(err)
			}
			if i%4 == 0 {
				used.Add(7)
				continue
			}
			c.limiter = limiters[(i+1)%3]
			used.Add(c.settleAtOnce(bill, 3, 9))
		}
	})
	if left, want := c.peek().Remaining, 10_000-int(used.Load()); left > want || left < want-f.rounding {
		t.Errorf("%d left, want %d", left, want)
	}
}

// settleAtOnce settles a bill at several numbers at once, each twice, and returns the one that counts.
func (c counter) settleAtOnce(bill *core.Bill, numbers ...int) (used int64) {
	var counts, settled atomic.Int64
	together(2*len(numbers), func(i int) {
		switch err := bill.Settle(context.Background(), numbers[i/2]); {
		case err == nil:
			counts.Store(int64(numbers[i/2]))
			settled.Add(1)
		case !errors.Is(err, core.ErrBillSettled):
			c.t.Error(err)
		}
	})
	if n := settled.Load(); n != 2 {
		c.t.Errorf("%d of two equal settlements succeeded", n)
	}
	return counts.Load()
}

// billsBounded uses up a limit by bills, which then turn out to have used more than twice the limit.
// The processes share a limit and its debt, exactly, and report the rest.
func billsBounded(t *testing.T, limiters []*core.Limiter, f facts) {
	c := counter{t: t, limiter: limiters[0], name: "name", subject: "subject", limit: f.lasting(99)}
	bills := make([]*core.Bill, 40)
	together(len(bills), func(i int) {
		c := c
		c.limiter = limiters[i%3]
		bill, d, err := c.open(3)
		if err != nil || d.Allowed != (bill != nil) {
			t.Errorf("%+v, %v", d, err)
		}
		bills[i] = bill
	})
	bills = slices.DeleteFunc(bills, func(b *core.Bill) bool { return b == nil })
	var above atomic.Int64
	together(len(bills), func(i int) {
		if err := bills[i].Settle(context.Background(), 8); errors.Is(err, core.ErrDebtExceeded) {
			above.Add(1)
		} else if err != nil {
			t.Error(err)
		}
	})
	if total := len(bills)*8 - exceeded(limiters); len(bills) != 33 || total != 2*99 || above.Load() == 0 {
		t.Errorf("%d bills of 3 opened, and %d charged, want 33 and 198", len(bills), total)
	}
}

// settledWithoutAnswer loses the answers to an Open and to settlements that were carried out.
func settledWithoutAnswer(t *testing.T, e Engine, f facts) {
	var net network
	options := e.options(t, net.dial)
	c := counter{t: t, limiter: newLimiter(t, options), name: "name", subject: "subject", limit: f.lasting(100)}
	bills := []*core.Bill{c.mustOpen(10), c.mustOpen(10)}
	if err := bills[0].Add(context.Background(), 1); err != nil { // so that the servers know the scripts
		t.Fatal(err)
	}
	net.losesReplies.Store(true)
	if bill, _, err := c.open(5); bill != nil || !errors.Is(err, core.ErrStore) {
		t.Errorf("%v, %v", bill, err)
	}
	c.settle(bills[0], 4, core.ErrStore)
	c.settle(bills[1], 20, core.ErrStore)
	net.losesReplies.Store(false)
	c.limiter = newLimiter(t, options) // the breaker of the other one may be open
	for i, used := range []int{4, 20} {
		again, err := c.billing().Resume(bills[i].Token())
		if err != nil {
			t.Fatal(err)
		}
		c.settle(again, used, nil)
		c.settle(again, used+1, core.ErrBillSettled)
	}
	if left := c.peek().Remaining; left != 100-5-24 && left != 100-5-24-f.rounding {
		t.Errorf("%d left, want 71", left)
	}
}
