package algorithm_test

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/accesslimit/accesslimit/core/internal/algorithm"
)

// chargeInDebt charges counters of both engines whether their costs fit or not.
func (e *engines) chargeInDebt(at int64, share float64, counters []algorithm.Counter) []algorithm.Verdict {
	op := algorithm.NewOp(algorithm.InDebt, counters...)
	op.Share = share
	e.add(e.do(fmt.Sprint("in debt up to ", share), op, at))
	return op.Verdicts
}

// shares are bounds of debts.
var shares = []float64{1, 1, 0.3, 2.5, 1e-9, 10}

// owe charges all members that can be in debt, often more than is left.
func (c *caller) owe() {
	counters := slices.DeleteFunc(c.counters(c.members), func(of algorithm.Counter) bool { return !of.Limit.CanBeInDebt() })
	if len(counters) == 0 {
		return
	}
	for i := range counters {
		counters[i].Behind, counters[i].Cost = 0, upTo(c.T, 3*counters[i].Limit.Max, "owed")
	}
	verdicts := c.chargeInDebt(c.now, rapid.SampledFrom(shares).Draw(c.T, "debt"), counters)
	c.last = rapid.SampledFrom(verdicts).Draw(c.T, "whose answer")
	for i := range counters {
		if charged := counters[i].Charged(&verdicts[i]); charged.Cost > 0 {
			c.charges = append(c.charges, charged)
		}
	}
}

// To charge nothing changes nothing, also when the clock has stepped back.
func TestChargeOfNothingInDebt(t *testing.T) {
	s, e := startServer(t), newEngines(early)
	for i, limit := range oneOfEach(t) {
		if !limit.CanBeInDebt() {
			continue
		}
		counter := []algorithm.Counter{{Key: fmt.Appendf(nil, "counter %d", i), Limit: &limit, Cost: 1}}
		e.now = early
		e.decide(true, early, counter)
		e.now -= hour
		nothing := counter[0]
		nothing.Cost = 0
		e.chargeInDebt(e.now, 1, []algorithm.Counter{nothing})
		e.now += 2
		e.decide(true, e.now, counter)
	}
	e.run(t, s, timed, nil)
}
