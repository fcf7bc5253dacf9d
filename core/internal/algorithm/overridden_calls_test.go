package algorithm_test

import (
	"context"
	"fmt"
	"slices"

	"pgregory.net/rapid"

	"github.com/accesslimit/accesslimit/core/internal/algorithm"
)

// call decides a call by all three stores.
func (o *operator) call(charge bool) {
	counters := o.counters()
	kept, places, stopped := o.plainly(counters)
	want := make([]algorithm.Verdict, len(kept))
	o.plain.Decide(context.Background(), kept, charge, want)

	process, verdicts := cloned(counters), make([]algorithm.Verdict, len(counters))
	o.process.Decide(context.Background(), process, charge, verdicts)
	for n, i := range places {
		if verdicts[i] != want[n] || !process[i].Limit.Equal(kept[n].Limit) || process[i].Cost != kept[n].Cost {
			o.Fatalf("this process answers %+v for %+v, as plain limits %+v for %+v", verdicts[i], process[i], want[n], kept[n])
		}
	}
	for i := range verdicts {
		o.checkLeftOut(&process[i], &verdicts[i], stopped, slices.Contains(places, i))
	}
	redis := cloned(counters)
	s := step{said: fmt.Sprintf("call %+v", counters), script: algorithm.DecideScript(redis), argv: algorithm.AppendDecide(nil, redis, charge, o.now)}
	s.check = func(reply any) error {
		got := make([]algorithm.Verdict, len(redis))
		if err := algorithm.ReadDecided(reply.([]any), redis, charge, got); err != nil {
			return err
		}
		return same(redis, process, got, verdicts)
	}
	o.ask(s, redis)
	if o.last = rapid.SampledFrom(verdicts).Draw(o.T, "whose answer"); !charge || !algorithm.Passes(process, verdicts) {
		return
	}
	for i := range process {
		if charged := process[i].Charged(&verdicts[i]); charged.Cost > 0 && verdicts[i].From == algorithm.FromStore {
			o.charges = append(o.charges, charged)
		}
	}
}

// ask adds a step on the keys of counters and of their overrides.
func (o *operator) ask(s step, counters []algorithm.Counter) {
	for i := range counters {
		s.keys = append(s.keys, string(counters[i].Key))
	}
	for _, q := range algorithm.AppendQueries(nil, counters) {
		s.keys = append(s.keys, string(q.Key))
	}
	o.add(s)
}

// cloned returns counters with queries of their own.
func cloned(counters []algorithm.Counter) []algorithm.Counter {
	counters = slices.Clone(counters)
	for _, q := range algorithm.AppendQueries(nil, counters) {
		own := *q
		for i := range counters {
			if counters[i].Override == q {
				counters[i].Override = &own
			}
		}
	}
	return counters
}

// checkLeftOut checks the verdict on a counter that did not take part.
func (o *operator) checkLeftOut(c *algorithm.Counter, v *algorithm.Verdict, stopped, kept bool) {
	if kept || c.Override == nil && !stopped {
		return
	}
	want := algorithm.Verdict{At: o.now, From: algorithm.FromNobody}
	if c.Override != nil {
		switch of := o.ruleOf(c).active(o.now); {
		case of != nil && of.What == algorithm.OverrideBlocked && c.Own:
			want = algorithm.Verdict{At: o.now, RetryAfter: algorithm.Forever, Blocked: true}
			if of.Ends > 0 {
				want.RetryAfter = of.Ends - o.now
			}
		case c.InForce() && c.Cost > c.Limit.Max && !o.anyBlocked():
			want = algorithm.Verdict{At: o.now, RetryAfter: algorithm.Forever, Costly: true}
		}
	}
	if *v != want {
		o.Fatalf("%+v gets %+v, want %+v", c, v, want)
	}
}

// anyBlocked reports whether a rule that refuses calls blocks its subject.
func (o *operator) anyBlocked() bool {
	return slices.ContainsFunc(o.rules, func(r *overridingRule) bool {
		of := r.active(o.now)
		return !r.dry && of != nil && of.What == algorithm.OverrideBlocked
	})
}

// same returns how the answers of Redis differ from those of this process.
func same(redis, process []algorithm.Counter, got, want []algorithm.Verdict) error {
	for i := range want {
		a, b := &redis[i], &process[i]
		if got[i] != want[i] || a.Cost != b.Cost || !a.Limit.Equal(b.Limit) {
			return fmt.Errorf("Redis answers %+v for %+v, this process %+v for %+v", got[i], a, want[i], b)
		}
		if a.Override != nil && a.Override.Found != b.Override.Found && a.Override.Found.What != algorithm.OverrideInvalid {
			return fmt.Errorf("Redis finds %+v, this process %+v", a.Override.Found, b.Override.Found)
		}
	}
	return nil
}

// giveBack gives a charge back on all stores.
func (o *operator) giveBack() {
	if len(o.charges) == 0 {
		return
	}
	i := rapid.IntRange(0, len(o.charges)-1).Draw(o.T, "which charge")
	charge := o.charges[i]
	o.charges = slices.Delete(o.charges, i, i+1)
	o.engines.giveBack(charge)
	_ = o.plain.GiveBack(context.Background(), []algorithm.Charge{charge})
}

// single returns the counters of one rule, as those of a handle.
func (o *operator) single(suits func(*algorithm.Properties) bool) []algorithm.Counter {
	counters := slices.DeleteFunc(o.counters(), func(c algorithm.Counter) bool {
		return c.Override == nil || o.ruleOf(&c) != o.rules[0] || c.Lenient || !suits(c.Limit.Properties())
	})
	for i := range counters {
		counters[i].Cost = 1 + o.now%40
	}
	return counters
}

// takeUpTo takes as much as fits, in all three stores.
func (o *operator) takeUpTo() {
	counters := o.single(func(p *algorithm.Properties) bool { return !p.Slots })
	if len(counters) == 0 || !counters[0].Own {
		return
	}
	kept, places, _ := o.plainly(withCost(counters, 1))
	want := make([]algorithm.Verdict, len(kept))
	algorithm.SetCost(kept, counters[0].Cost)
	if len(kept) > 0 {
		o.plain.DecideUpTo(context.Background(), kept, want)
	}
	process, verdicts := cloned(counters), make([]algorithm.Verdict, len(counters))
	o.process.DecideUpTo(context.Background(), process, verdicts)
	for n, i := range places {
		if verdicts[i] != want[n] || process[i].Cost != kept[n].Cost {
			o.Fatalf("this process answers %+v for %+v, as plain limits %+v for %+v", verdicts[i], process[i], want[n], kept[n])
		}
	}
	redis := cloned(counters)
	s := step{said: fmt.Sprintf("up to %+v", counters), script: algorithm.UpToScript(redis), argv: algorithm.AppendUpTo(nil, redis, o.now)}
	s.check = func(reply any) error {
		got := make([]algorithm.Verdict, len(redis))
		granted, err := algorithm.ReadUpTo(reply.([]any), redis, got)
		if err != nil {
			return err
		}
		algorithm.SetCost(redis, max(1, granted))
		return same(redis, process, got, verdicts)
	}
	o.ask(s, redis)
}

func withCost(counters []algorithm.Counter, cost int64) []algorithm.Counter {
	counters = slices.Clone(counters)
	algorithm.SetCost(counters, cost)
	return counters
}

// reserve takes a turn at a bucket, in all three stores.
func (o *operator) reserve() {
	counters := o.single(func(p *algorithm.Properties) bool { return p.Reserves })
	if len(counters) == 0 || !counters[0].Own {
		return
	}
	if oneIn(o.T, 4, "too much for any bucket") {
		counters[0].Cost = algorithm.LargestCost - 1
	}
	patience := upTo(o.T, 3*hour, "patience")
	process, redis := cloned(counters), cloned(counters)
	v := o.process.Reserve(context.Background(), &process[0], patience)
	if kept, _, _ := o.plainly(withCost(counters, 1)); len(kept) == 1 && counters[0].Cost <= kept[0].Limit.Reserved {
		kept[0].Cost = counters[0].Cost
		if want := o.plain.Reserve(context.Background(), &kept[0], patience); v != want {
			o.Fatalf("this process answers %+v, as plain limit %+v", v, want)
		}
	}
	s := step{said: fmt.Sprintf("reserve %+v", counters), script: algorithm.ReserveScript(&redis[0]), argv: algorithm.AppendReserve(nil, &redis[0], patience)}
	s.check = func(reply any) error {
		got, err := algorithm.ReadReserved(reply.([]any), &redis[0])
		if err != nil {
			return err
		}
		return same(redis, process, []algorithm.Verdict{got}, []algorithm.Verdict{v})
	}
	o.ask(s, redis)
}

// come makes equal calls of one rule at once, which Redis decides in one script and this process one
// after the other.
func (o *operator) come() {
	counters := o.counters()
	if oneIn(o.T, 2, "small") {
		for i := range counters {
			counters[i].Cost = min(counters[i].Cost, 1+counters[i].Limit.Max/8)
		}
	}
	first := counters[0].Override
	counters = slices.DeleteFunc(counters, func(c algorithm.Counter) bool { return c.Override != first || !c.Merges() })
	if len(counters) == 0 || !counters[0].Own {
		return
	}
	calls := 1 + o.now%7
	asked, want, process := cloned(counters), make([][]algorithm.Verdict, calls), make([][]algorithm.Counter, calls)
	for n := range calls {
		want[n], process[n] = make([]algorithm.Verdict, len(counters)), cloned(counters)
		o.process.Decide(context.Background(), process[n], true, want[n])
		if kept, _, _ := o.plainly(counters); len(kept) > 0 {
			o.plain.Decide(context.Background(), kept, true, make([]algorithm.Verdict, len(kept)))
		}
	}
	s := step{said: fmt.Sprintf("%d calls %+v", calls, counters), script: algorithm.EqualScript(asked), argv: algorithm.AppendEqual(nil, asked, calls, o.now)}
	s.check = func(reply any) error {
		for n := range calls {
			redis, got, found := cloned(counters), make([]algorithm.Verdict, len(counters)), make([]algorithm.Found, len(counters))
			settled, err := algorithm.ReadEqual(reply.([]any), redis, found, got)
			if err != nil {
				return err
			}
			passed := calls
			for i := range redis {
				if !settled {
					passed = found[i].Fit(&redis[i], passed)
				}
			}
			for i := range redis {
				if !settled {
					found[i].Nth(&redis[i], n, passed, &got[i])
				}
			}
			if err := same(redis, process[n], got, want[n]); err != nil {
				return fmt.Errorf("call %d: %w", n, err)
			}
		}
		return nil
	}
	o.ask(s, asked)
}
