package engine_test

import (
	"fmt"
	"runtime"
	"testing"

	"pgregory.net/rapid"

	"github.com/accesslimit/accesslimit/core/internal/algorithm"
	"github.com/accesslimit/accesslimit/core/internal/engine"
	"github.com/accesslimit/accesslimit/core/internal/marks"
)

// drawRules draws rules of all kinds, of which some share counters.
func drawRules(t *rapid.T) (rules []by) {
	for range rapid.IntRange(0, 4).Draw(t, "rules") {
		limits := rapid.SampledFrom([][]engine.Limit{
			{perDay(4)}, {perDay(3), perHour(5)}, {perHour(2)}, {bucket(3, 2)}, {bucket(2, 4), perDay(6)}, {logged(3)}, {slots(2), logged(4)},
		}).Draw(t, "limits")
		r := rule(rapid.SampledFrom([]string{"n", "m"}).Draw(t, "name"), rapid.Bool().Draw(t, "soft"), limits...)
		r.Required, r.Lease = rapid.Bool().Draw(t, "required"), rapid.Int64Range(0, 1).Draw(t, "lease")
		r.Warn = rapid.SampledFrom([][]float64{nil, {.5}, {.25, .75}}).Draw(t, "warn")
		r.LocalShare = rapid.SampledFrom([]float64{0, .5}).Draw(t, "share")
		rules = append(rules, by{
			Rule: r, cost: rapid.SampledFrom([]int64{1, 2, 3, 5, algorithm.LargestCost}).Draw(t, "cost"),
			subject: rapid.SampledFrom([]string{"", "b"}).Draw(t, "subject"), note: "note",
			free: rapid.IntRange(0, 4).Draw(t, "free") == 0, unlimited: rapid.IntRange(0, 4).Draw(t, "unlimited") == 0,
			personal: rapid.Bool().Draw(t, "personal"), lasts: hour,
			mark:    rapid.SampledFrom([]marks.Kind{"", "", "", "", marks.Blocked, marks.Banned}).Draw(t, "mark"),
			instead: rapid.SampledFrom([][]*engine.Limit{nil, nil, nil, {ptr("n", perDay(2))}}).Draw(t, "instead"),
		})
	}
	return rules
}

// everything describes a call, and what was noticed of it.
func (c *call) everything() string {
	costly, name := c.Costly(), "none"
	if costly.By != nil {
		name = fmt.Sprint(costly.By.Rule.Name, costly.By.At, costly.N, costly.At, costly.Most)
	}
	binding := c.Binding()
	c.Notice(binding)
	text := fmt.Sprintln(c.counters()) + fmt.Sprintln(c.verdicts()) +
		fmt.Sprintln("costly", name, "binding", binding, "holder", c.Holder(), "soft", c.HasSoft(), "fit", c.Fit(), c.of.take())
	for i := range c.Len() {
		counter := c.Counter(i)
		text += fmt.Sprintf("%s lease %d outcome %d, ", counter.Key, counter.Lease, c.Outcome(i))
	}
	return text
}

// act is one thing that happens to a call. A new one adds no rules in vain.
func (c *call) act(what string, rules []by, isNew bool) {
	switch what {
	case "decide":
		c.add(rules...).Decide(background)
	case "look":
		c.LookOnly(true)
		c.add(rules...).Look(background)
	case "ask":
		c.add(rules...).Ask(background)
	case "up to":
		if c.add(rules...); c.Counts() {
			c.DecideUpTo(background)
		}
	case "recall":
		c.LookOnly(true)
		if c.add(rules...); c.Len() > 0 {
			c.Recall()
		}
	case "add again":
		c.LookOnly(true)
		applied := c.apply(rules...)
		for _, a := range applied {
			if !isNew {
				c.Add(a)
			}
		}
		c.Drop()
		c.LookOnly(false)
		for i, a := range applied {
			if i%2 == 0 {
				c.Add(a)
			}
		}
		c.Decide(background)
	}
}

// A call that was used before answers as a new one does, whatever it was used for.
func TestCallsAreUsedAgain(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		used, fresh := newWorld(t), newWorld(t)
		defer used.store.Close()
		defer fresh.store.Close()
		for _, w := range []*world{used, fresh} {
			w.Refusals = &memory{store: w.store, recalled: []algorithm.Verdict{{From: algorithm.FromRefusal, RetryAfter: hour}}}
		}
		c := used.open()
		for range rapid.IntRange(1, 12).Draw(rt, "calls") {
			what := rapid.SampledFrom([]string{"decide", "look", "ask", "up to", "recall", "add again"}).Draw(rt, "what")
			rules := drawRules(rt)
			if what == "up to" && len(rules) > 1 {
				rules = rules[:1]
			}
			f := fresh.open()
			c.act(what, rules, false)
			f.act(what, rules, true)
			if got, want := c.everything(), f.everything(); got != want {
				rt.Fatalf("%s by a used call:\n%s\nby a new one:\n%s", what, got, want)
			}
			c.Clear()
			c.applied = nil
		}
	})
}

// Charges have numbers of their own, also those of a call that is used again.
func TestIDs(t *testing.T) {
	w := newWorld(t)
	c := w.open()
	for _, want := range []uint64{1, 4, 5} {
		if c.ID() != want {
			t.Errorf("number %d, want %d", c.ID(), want)
		}
		if want == 1 {
			c.add(by{Rule: hard("n", perDay(1), perHour(1))})
		}
		c.Clear()
	}
}

// quiet is an observer that notes nothing.
type quiet struct{ engine.Observer }

func (quiet) Charged(int, []float64) {}

func (quiet) Decided(int, engine.Decided) {}

// A call that was used before allocates nothing.
func TestAllocations(t *testing.T) {
	w := newWorld(t)
	w.Store = w.store.Store
	subject := []byte("a")
	for name, rules := range map[string][]*engine.Rule{
		"one rule":  {hard("n", perDay(1e9))},
		"many":      {hard("n", perDay(1e9), perHour(1e9)), hard("n", perDay(1e8)), soft("s", perDay(1e9), perHour(2))},
		"a refusal": {hard("r", perDay(1)), hard("k", perDay(1e9))},
	} {
		c, applied := w.NewCall(quiet{}, 1), make([]engine.Applied, len(rules))
		decide := func() {
			c.Clear()
			for i, r := range rules {
				applied[i] = engine.Applied{Rule: r, Subject: subject, Cost: int64(len(r.Limits)), Own: r.Limits[0]}
				c.Add(&applied[i])
			}
			c.Decide(background)
			c.Notice(c.Binding())
		}
		if n := testing.AllocsPerRun(100, decide); n > 0 {
			t.Errorf("%s: %v allocations", name, n)
		}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		for range 10_000 {
			decide()
		}
		if runtime.ReadMemStats(&after); after.TotalAlloc-before.TotalAlloc > 10_000 {
			t.Errorf("%s: a call that is used again grows by %d bytes", name, after.TotalAlloc-before.TotalAlloc)
		}
	}
}

// A bill keeps its charges for as long as it is open, while other calls use the same memory.
func TestChargesOutliveTheCall(t *testing.T) {
	w := newWorld(t)
	c := w.open().add(by{Rule: hard("n", perDay(9)), subject: "alice"})
	c.Decide(background)
	charges := c.Charges()
	if len(charges) != 1 {
		t.Fatalf("%+v", charges)
	}
	before := string(charges[0].Key)
	c.Clear()
	c.add(by{Rule: hard("n", perDay(9)), subject: "bobby"})
	if after := string(charges[0].Key); after != before {
		t.Errorf("the charge of %q has become one of %q", before, after)
	}
}
