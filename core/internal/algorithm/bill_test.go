package algorithm_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/accesslimit/accesslimit/core/internal/algorithm"
)

// open decides a call on both engines, and opens a bill if it passes.
func (e *engines) open(at int64, key string, span int64, counters []algorithm.Counter) (b *algorithm.Bill, verdicts []algorithm.Verdict) {
	op := algorithm.NewOp(algorithm.AllOrNone, counters...)
	op.Bill = &algorithm.OpenBill{Key: []byte(key), Span: span}
	s := e.do("open "+key, op, at)
	verdicts = op.Verdicts
	if algorithm.Passes(counters, verdicts) {
		s.writes = s.keys
		b = &algorithm.Bill{Key: []byte(key), Share: 1}
		for i := range counters {
			charge := counters[i].Charged(&verdicts[i])
			charge.InDebt = true
			b.Charges = append(b.Charges, charge)
		}
	}
	e.add(s)
	return b, verdicts
}

// settle changes a bill on both engines.
func (e *engines) settle(at int64, b *algorithm.Bill, c algorithm.BillChange) algorithm.BillAnswer {
	s, change := e.change(fmt.Sprintf("%+v of", c), at, algorithm.Change{Kind: algorithm.ChangesBill, Bill: b, To: c})
	s.keys = append(s.keys, string(b.Key))
	s.writes = s.keys
	e.add(s)
	return change.Billed
}

// openBill opens a bill on all members that can be in debt.
func (c *caller) openBill() {
	counters := slices.DeleteFunc(c.counters(c.members), func(of algorithm.Counter) bool { return !of.Limit.CanBeInDebt() })
	if len(counters) == 0 {
		return
	}
	most := counters[0].Limit.Max
	for i := range counters {
		most = min(most, counters[i].Limit.Max)
	}
	cost := 1 + upTo(c.T, most-1, "estimate")
	for i := range counters {
		counters[i].Behind, counters[i].Cost = 0, cost
	}
	b, verdicts := c.open(c.behind(), fmt.Sprint("bill ", len(c.bills)), hour, counters)
	c.last = rapid.SampledFrom(verdicts).Draw(c.T, "whose answer")
	if b != nil {
		b.Share = rapid.SampledFrom(shares).Draw(c.T, "debt")
		c.bills = append(c.bills, b)
	}
}

// changeBill adds to a bill, or settles it, perhaps a second time.
func (c *caller) changeBill() {
	if len(c.bills) == 0 {
		c.openBill()
		return
	}
	b := rapid.SampledFrom(c.bills).Draw(c.T, "bill")
	c.settle(c.behind(), b, algorithm.BillChange{
		Settle: oneIn(c.T, 3, "settle"), Permits: upTo(c.T, 2*b.Estimate(), "permits"),
	})
}

// A bill that is settled by a process whose clock is still before midnight leaves a counter of the day
// that has begun for Redis.
func TestBillSettledBeforeMidnight(t *testing.T) {
	limit := algorithm.InCalendar(100, algorithm.NewCalendar("UTC", time.UTC, false))
	e := newEngines(early + day - early%day + second/2) // half a second past midnight
	ofDay := func(cost int64) []algorithm.Counter {
		return []algorithm.Counter{{Key: []byte("day"), Limit: &limit, Cost: cost}}
	}
	e.open(e.now-second, "a", hour, ofDay(80))
	b, _ := e.open(e.now-second, "b", hour, ofDay(20))
	e.settle(e.now-second, b, algorithm.BillChange{Settle: true, Permits: 10})
	e.now += second / 4
	if v := e.decide(true, e.now, ofDay(11))[0]; v.RetryAfter == 0 {
		t.Errorf("101 permits of 100: %+v", v)
	}
	e.run(t, startServer(t), expiring, nil)
}

// billed is a bill as a model knows it, by its counter.
type billed struct {
	*algorithm.Bill
	id    int64
	costs []int64 // what it was opened with, and the additions, as far as they were charged
}

// On both engines, a bucket with bills holds what the queue does, to the microsecond: bills give back
// what still counts, also in debt, of the first charge and of the newest additions.
func TestBillsOfBucketsAreExact(t *testing.T) {
	s, limit := startServer(t), sharing(t)[0]
	rapid.Check(t, func(t *rapid.T) {
		c := &billCaller{T: t, engines: newEngines(early), queue: &queue{limit: limit}}
		for range rapid.IntRange(10, 50).Draw(t, "steps") {
			c.now += upTo(t, 2*second, "passes") / rapid.SampledFrom([]int64{1, 100, 10_000}).Draw(t, "by")
			c.step()
			want := c.answer(c.now, 1)
			if got := c.decide(false, c.now, []algorithm.Counter{{Key: []byte("bucket"), Limit: limit, Cost: 1}})[0]; got != want {
				t.Fatalf("%s\nwant %+v", c.story(len(c.steps)-1), want)
			}
		}
		c.run(t, s, timed, nil)
	})
}

// billCaller opens and changes bills on a bucket, on both engines and the model.
type billCaller struct {
	*rapid.T
	*engines
	*queue
	bills []*billed
	ids   int64
}

func (c *billCaller) step() {
	if len(c.bills) == 0 || rapid.Bool().Draw(c.T, "open") {
		cost := 1 + upTo(c.T, c.limit.Max-1, "estimate")
		b, _ := c.open(c.now, fmt.Sprint("bill", c.ids), hour, []algorithm.Counter{{Key: []byte("bucket"), Limit: c.limit, Cost: cost}})
		if b != nil {
			c.ids += 100
			c.queue.charge(c.now, cost, c.ids)
			c.bills = append(c.bills, &billed{b, c.ids, []int64{cost}})
		}
		return
	}
	at := rapid.IntRange(0, len(c.bills)-1).Draw(c.T, "bill")
	b := c.bills[at]
	change := algorithm.BillChange{Settle: rapid.Bool().Draw(c.T, "settle"), Permits: upTo(c.T, 2*b.Estimate(), "permits")}
	a := c.settle(c.now, b.Bill, change)
	if !change.Settle {
		c.charge(b, change.Permits-a.Above)
		return
	}
	c.bills = slices.Delete(c.bills, at, at+1)
	c.settled(b, change.Permits, a.Above)
}

// charge charges permits of a bill to the model.
func (c *billCaller) charge(b *billed, permits int64) {
	if permits > 0 {
		c.queue.charge(c.now, permits, b.id+int64(len(b.costs)))
	}
	b.costs = append(b.costs, max(0, permits))
}

// settled makes the model hold what a bill used.
func (c *billCaller) settled(b *billed, used, above int64) {
	charged := int64(0)
	for _, cost := range b.costs {
		charged += cost
	}
	if used > charged {
		c.charge(b, used-charged-above)
		return
	}
	back := charged - used
	parts := make([]int64, len(b.costs))
	parts[0] = min(back, b.costs[0])
	rest := back - parts[0]
	for n := len(b.costs) - 1; n > 0; n-- {
		parts[n] = min(rest, b.costs[n])
		rest -= parts[n]
	}
	for n, part := range parts {
		if part > 0 {
			c.queue.refund(c.now, part, b.id+int64(n))
		}
	}
}
