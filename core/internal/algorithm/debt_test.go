package algorithm_test

import (
	"context"
	"fmt"
	"slices"

	"pgregory.net/rapid"

	"github.com/accesslimit/accesslimit/core/internal/algorithm"
)

// chargeInDebt charges counters of both engines whether their costs fit or not.
func (e *engines) chargeInDebt(at int64, share float64, counters []algorithm.Counter) []algorithm.Verdict {
	verdicts := make([]algorithm.Verdict, len(counters))
	e.process.Charge(context.Background(), counters, share, nil, verdicts)
	s := step{
		said: fmt.Sprintf("charge in debt up to %v", share), script: algorithm.ChargeScript(counters, false),
		argv: algorithm.AppendCharge(nil, counters, false, share, at), want: []any{e.now},
	}
	for i, c := range counters {
		s.keys = append(s.keys, string(c.Key))
		s.said += fmt.Sprintf(" %s max %d cost %d", c.Key, c.Limit.Max, c.Cost)
		s.want = append(s.want, verdicts[i].Taken, verdicts[i].Remaining, verdicts[i].ResetAfter, verdicts[i].Position)
	}
	s.writes = s.keys
	e.add(s)
	return verdicts
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
		counters[i].Lenient, counters[i].Group, counters[i].Cost = false, 0, upTo(c.T, 3*counters[i].Limit.Max, "owed")
	}
	verdicts := c.chargeInDebt(c.now, rapid.SampledFrom(shares).Draw(c.T, "debt"), counters)
	c.last = rapid.SampledFrom(verdicts).Draw(c.T, "whose answer")
	for i := range counters {
		if charged := counters[i].Charged(&verdicts[i]); charged.Cost > 0 {
			c.charges = append(c.charges, charged)
		}
	}
}

// owe charges one rule whatever fits, in all three stores.
func (o *operator) owe() {
	counters := o.single(func(p *algorithm.Properties) bool { return p.Debts })
	if len(counters) == 0 || !counters[0].Own {
		return
	}
	share := rapid.SampledFrom(shares).Draw(o.T, "debt")
	kept, places, _ := o.plainly(withCost(counters, 1))
	want := make([]algorithm.Verdict, len(kept))
	algorithm.SetCost(kept, counters[0].Cost)
	o.plain.Charge(context.Background(), kept, share, nil, want)
	process, verdicts := cloned(counters), make([]algorithm.Verdict, len(counters))
	o.process.Charge(context.Background(), process, share, nil, verdicts)
	for n, i := range places {
		if verdicts[i] != want[n] {
			o.Fatalf("this process answers %+v for %+v, as plain limits %+v for %+v", verdicts[i], process[i], want[n], kept[n])
		}
	}
	redis := cloned(counters)
	s := step{said: fmt.Sprintf("charge %+v", counters), script: algorithm.ChargeScript(redis, false), argv: algorithm.AppendCharge(nil, redis, false, share, o.now)}
	s.check = func(reply any) error {
		got := make([]algorithm.Verdict, len(redis))
		if err := algorithm.ReadCharged(reply.([]any), redis, got); err != nil {
			return err
		}
		return same(redis, process, got, verdicts)
	}
	o.ask(s, redis)
}
