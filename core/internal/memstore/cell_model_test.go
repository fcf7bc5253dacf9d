package memstore

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/accesslimit/accesslimit/core/internal/algorithm"
)

// cellStep is a step of a trace that two stores take.
type cellStep struct {
	do         string
	key, limit int
	part       int64         // of what is charged or given back, of 1024
	pass       time.Duration // before the step
	until      string        // what changes by the last answer: the time passes until then, instead
	charge     int           // counted from the latest
}

var cellSteps = rapid.Custom(func(t *rapid.T) cellStep {
	return cellStep{
		do: rapid.SampledFrom([]string{
			"charge", "charge", "charge", "charge", "charge", "charge", "charge", "charge", "charge", "charge",
			"look", "give back", "reserve", "together", "up to", "sweep", "reset", "set the clock",
		}).Draw(t, "do"),
		key:   rapid.SampledFrom([]int{0, 0, 0, 0, 0, 1}).Draw(t, "key"),
		limit: rapid.SampledFrom([]int{0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 2, 3}).Draw(t, "limit"),
		part:  rapid.SampledFrom([]int64{0, 0, 0, 0, 1, 64, 300, 1024}).Draw(t, "part"),
		pass: time.Microsecond * time.Duration(rapid.OneOf(
			rapid.SampledFrom([]int64{0, 0, 1, 999, 1000, 1001}), rapid.Int64Range(0, 5000), rapid.Int64Range(0, 300_000),
			rapid.SampledFrom([]int64{0, 1, 999_999, second, second + 1, 60 * second}),
		).Draw(t, "pass")),
		until:  rapid.SampledFrom([]string{"", "", "", "", "", "", "", "", "fits", "almost fits", "fresh", "almost fresh"}).Draw(t, "until"),
		charge: rapid.IntRange(0, 3).Draw(t, "charge"),
	}
})

// cellPair is a store in which the keys have cells, and one in which they have none.
type cellPair struct {
	hot, table *Store
	limits     []*algorithm.Limit
	wall       time.Duration
	last       algorithm.Verdict
	charges    [][2]algorithm.Charge // in the one and the other
	cells      int                   // how many calls found a cell
}

func newCellPair(limits []*algorithm.Limit) *cellPair {
	p := &cellPair{hot: New(100, nil), table: New(100, nil), limits: limits}
	start := time.Now()
	for _, s := range []*Store{p.hot, p.table} {
		s.own.Read = func() (int64, int64) { return time.Now().Add(p.wall).UnixNano(), int64(time.Since(start)) }
		s.Close() // nothing is swept but what a step sweeps
	}
	return p
}

// wait lets time pass.
func (p *cellPair) wait(step *cellStep) {
	changes := map[string]int64{
		"fits": p.last.RetryAfter, "almost fits": p.last.RetryAfter - 1, "fresh": p.last.ResetAfter, "almost fresh": p.last.ResetAfter - 1,
	}[step.until]
	if changes > 0 {
		time.Sleep(time.Duration(changes) * time.Microsecond)
	} else {
		time.Sleep(step.pass)
	}
}

// play takes a step in both stores. The error says where they differ.
func (p *cellPair) play(step *cellStep) error {
	p.wait(step)
	limit := p.limits[step.limit%len(p.limits)]
	c := counter(fmt.Sprint("key", step.key), limit)
	c.Cost = 1 + (limit.Max-1)*step.part/1024
	other := counter(fmt.Sprint("key", 1-step.key), limit)
	switch step.do {
	case "charge":
		return p.charged(c, p.chargeHot(c), p.table.decide(true, c)[0])
	case "look":
		return p.same(p.hot.decide(false, c)[0], p.table.decide(false, c)[0])
	case "together":
		return p.same(p.hot.decide(true, c, other)[0], p.table.decide(true, c, other)[0])
	case "set the clock":
		p.wall += time.Duration(step.part-300) * step.pass
	}
	return p.change(step, c)
}

// chargeHot charges a counter in its cell, or opens one for the next call.
func (p *cellPair) chargeHot(c algorithm.Counter) algorithm.Verdict {
	before := p.hot.HasCell()
	v := p.hot.decide(true, c)[0]
	if after := p.hot.HasCell(); before && after { // a call that is not charged there closes it
		p.cells++
	} else if v.Taken > 0 {
		p.hot.openAt(&c, p.hot.arrival())
	}
	return v
}

// change takes a step that is no plain call.
func (p *cellPair) change(step *cellStep, c algorithm.Counter) error {
	ctx, patience := context.Background(), c.Limit.Window/4
	switch step.do {
	case "reserve":
		if c.Limit.Properties().Reserves {
			return p.charged(c, p.hot.reserve(c, patience), p.table.reserve(c, patience))
		}
	case "up to":
		return p.same(p.hot.do(algorithm.UpTo, c)[0], p.table.do(algorithm.UpTo, c)[0])
	case "give back":
		if at := len(p.charges) - 1 - step.charge; at >= 0 {
			p.giveBack(p.charges[at], step.part)
		}
	case "reset":
		_, _ = p.hot.Reset(ctx, c.Key)
		_, _ = p.table.Reset(ctx, c.Key)
		time.Sleep(time.Microsecond) // two lives of a counter in one microsecond cannot be distinguished
	case "sweep":
		p.hot.Sweep()
		p.table.Sweep()
	}
	// A cell does not know when the bucket was full. So a permit that came back before may be counted as lost.
	if p.hot.Len() != p.table.Len() || p.hot.RefundsLost() < p.table.RefundsLost() {
		return fmt.Errorf("%d keys, %d permits lost; without cells %d and %d", p.hot.Len(), p.hot.RefundsLost(), p.table.Len(), p.table.RefundsLost())
	}
	return nil
}

func (p *cellPair) giveBack(both [2]algorithm.Charge, part int64) {
	for i, s := range []*Store{p.hot, p.table} {
		charge := both[i]
		charge.Cost -= (charge.Cost - 1) * part / 1024
		_ = s.Change(context.Background(), &algorithm.Change{Charges: []algorithm.Charge{charge}})
	}
}

// charged compares answers to calls that charge, and keeps the charges.
func (p *cellPair) charged(c algorithm.Counter, got, want algorithm.Verdict) error {
	if got.Taken > 0 && want.Taken > 0 {
		p.charges = append(p.charges, [2]algorithm.Charge{c.Charged(&got), c.Charged(&want)})
	}
	return p.same(got, want)
}

// same compares answers. Positions may differ: a cell skips those that came back while the bucket
// was full.
func (p *cellPair) same(got, want algorithm.Verdict) error {
	p.last = want
	if position := got.Position; (position == 0) == (want.Position == 0) {
		want.Position = position
	}
	if got != want {
		return fmt.Errorf("%+v; without cells %+v", got, want)
	}
	return nil
}

// cellLimits returns limits that share keys, as the limits of several plans do, or those before and
// after a change of a rule. A bucket by the hour and more counts milliseconds.
func cellLimits(t *testing.T) map[string][]*algorithm.Limit {
	const hour, day = 3600 * second, 24 * 3600 * second
	all := map[string][]*algorithm.Limit{}
	for name, window := range map[string]int64{"second": second, "minute": 60 * second, "hour": hour, "odd hour": hour + 1, "week": 7 * day, "year": 366 * day} {
		all["buckets by the "+name] = []*algorithm.Limit{
			bucket(t, 9, window, 9), bucket(t, 9, window, 20), bucket(t, 2, window, 5), bucket(t, 1000, window, 300),
		}
		if window%second == 0 {
			all["fast buckets by the "+name] = []*algorithm.Limit{
				bucket(t, window/500, window, 1000), bucket(t, window/320, window, 50), bucket(t, 7, window, 300),
			}
		}
	}
	minute, hourly := all["buckets by the minute"], all["buckets by the hour"]
	all["buckets by the minute and the hour"] = []*algorithm.Limit{hourly[0], minute[0], bucket(t, 540, hour, 9)}
	for name, kind := range map[string]algorithm.Kind{
		"sliding windows": algorithm.SlidingWindow, "fixed windows": algorithm.FixedWindow, "calendar windows": algorithm.CalendarWindow,
	} {
		all[name] = []*algorithm.Limit{new(algorithm.Windowed(kind, 9, second)), new(algorithm.Windowed(kind, 20, second))}
	}
	return all
}

// A store gives the same answers, to the microsecond, and forgets a key at the same time, whether or
// not the key had a cell.
func TestCellsAnswerAsTheTable(t *testing.T) {
	for name, limits := range cellLimits(t) {
		t.Run(name, func(t *testing.T) {
			cells := 0
			rapid.Check(t, func(rt *rapid.T) {
				trace := rapid.SliceOfN(cellSteps, 50, 150).Draw(rt, "trace")
				var wrong error
				synctest.Test(t, func(*testing.T) {
					p := newCellPair(limits)
					for i := 0; i < len(trace) && wrong == nil; i++ {
						if wrong = p.play(&trace[i]); wrong != nil {
							wrong = fmt.Errorf("step %d, %s at %d: %w", i, trace[i].do, p.table.Now(), wrong)
						}
					}
					cells += p.cells
				})
				if wrong != nil {
					rt.Fatal(wrong)
				}
			})
			if cells == 0 {
				t.Error("no call found a cell")
			}
		})
	}
}
