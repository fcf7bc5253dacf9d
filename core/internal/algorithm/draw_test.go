package algorithm_test

import (
	"fmt"
	"slices"

	"pgregory.net/rapid"

	"github.com/accesslimit/accesslimit/core/internal/algorithm"
)

// oneIn returns true once in n draws on average. A failing trace shrinks to one in which it is
// always false.
func oneIn(t *rapid.T, n int, what string) bool { return rapid.IntRange(0, n-1).Draw(t, what) == n-1 }

// upTo draws a number from 0 to most: often a small one, otherwise any.
func upTo(t *rapid.T, most int64, what string) int64 {
	if few := rapid.Int64Range(0, 4).Draw(t, what); few < 4 {
		return min(few, most)
	}
	return most/1024*rapid.Int64Range(0, 1024).Draw(t, what+" of 1024") + most%1024*rapid.Int64Range(0, 1).Draw(t, what+" rest")
}

// member is a counter of a trace. Each call counts it under one of the limits of its family.
type member struct {
	family family
	limit  *algorithm.Limit
	key    string
	behind uint16 // Counter.Behind
}

// caller makes random calls on both engines. It often calls again at the moments at which, by the
// answers so far, something changes.
type caller struct {
	*rapid.T
	*engines
	members []*member
	others  []*member          // counters of further calls in the same script; see join
	charges []algorithm.Charge // of all calls that passed
	bills   []*algorithm.Bill
	holders int
	last    algorithm.Verdict
	jumps   bool // whether the clock steps back and forth
	back    int64
}

// newCaller begins a trace over some of the families.
func newCaller(t *rapid.T, jumps bool, from []family) *caller {
	c := &caller{T: t, jumps: jumps}
	for i := range rapid.IntRange(1, 3).Draw(t, "counters") {
		f := rapid.SampledFrom(from).Draw(t, "family")
		c.members = append(c.members, &member{family: f, limit: f.limits[0], key: fmt.Sprint(f.name, " ", i)})
	}
	for _, m := range c.members {
		m.behind = uint16(max(0, rapid.IntRange(-3, 2).Draw(t, "behind")))
	}
	c.others = drawOthers(t)
	first := c.members[0].family
	now := early + upTo(t, hour+3*first.window, "begin")
	if len(first.moments) > 0 {
		now = rapid.SampledFrom(first.moments).Draw(t, "moment") + upTo(t, 3*day, "after") - day
	}
	c.engines = newEngines(now)
	return c
}

// step takes a random step at a random time, mostly a call for a permit.
func (c *caller) step() {
	c.pass()
	switch rapid.IntRange(0, 24).Draw(c.T, "what") {
	default:
		c.call(true)
	case 6, 7, 8:
		c.come()
	case 9:
		c.call(false)
	case 10, 11:
		c.refund()
	case 12:
		c.each(algorithm.TokenBucket, c.takeTurn)
	case 13:
		c.each(algorithm.Concurrency, c.keepSlot)
	case 14:
		c.each(algorithm.SlidingLog, func(m *member) { c.records(m.key, m.limit) })
	case 16:
		c.takeUpTo()
	case 17, 18:
		c.join()
	case 19, 20:
		c.owe()
	case 21:
		c.openBill()
	case 22, 23, 24:
		c.changeBill()
	case 15:
		if oneIn(c.T, 4, "reset") {
			c.reset(rapid.SampledFrom(c.members).Draw(c.T, "reset of").key)
		}
	}
	c.look(c.members) // checks the state after every step
}

// pass lets time pass, often until an answer changes.
func (c *caller) pass() {
	window := rapid.SampledFrom(c.members).Draw(c.T, "by whose window").family.window
	c.now += later(c.T, window, c.last)
	switch {
	case !c.jumps:
	case oneIn(c.T, 16, "an hour"):
		c.now += c.back - (hour - c.back)
		c.back = hour - c.back
	case oneIn(c.T, 10, "a moment"):
		c.now -= upTo(c.T, window/2, "back")
	}
	c.now = min(c.now, late)
}

// behind returns the time by the process's own clock, which is sometimes behind.
func (c *caller) behind() int64 {
	return c.now - upTo(c.T, day/24, "behind")*int64(rapid.IntRange(0, 1).Draw(c.T, "clock"))
}

// call makes a call on all members together, or on one of them.
func (c *caller) call(charge bool) {
	members := c.members
	if oneIn(c.T, 6, "alone") {
		members = []*member{rapid.SampledFrom(members).Draw(c.T, "who")}
	}
	counters := c.counters(members)
	verdicts := c.decide(charge, c.behind(), counters)
	c.last = rapid.SampledFrom(verdicts).Draw(c.T, "whose answer")
	if !charge || !algorithm.Passes(counters, verdicts) {
		return
	}
	for i := range counters {
		if charged := counters[i].Charged(&verdicts[i]); charged.Cost > 0 {
			c.charges = append(c.charges, charged)
		}
	}
}

// come makes equal calls as a crowd on the members for which several calls can be decided together.
func (c *caller) come() {
	members := c.members
	if oneIn(c.T, 2, "alone") {
		members = []*member{rapid.SampledFrom(members).Draw(c.T, "who")}
	}
	counters := slices.DeleteFunc(c.counters(members), func(of algorithm.Counter) bool { return !of.Merges() })
	if len(counters) == 0 {
		return
	}
	if oneIn(c.T, 2, "small") {
		for i := range counters {
			counters[i].Cost = min(counters[i].Cost, 1+counters[i].Limit.Max/8)
		}
	}
	verdicts := c.crowd(int64(rapid.IntRange(1, 12).Draw(c.T, "calls")), c.now, counters)
	c.last = rapid.SampledFrom(verdicts).Draw(c.T, "whose answer")
}

// takeUpTo takes as much of a cost as fits into all members except for slots.
func (c *caller) takeUpTo() {
	counters := slices.DeleteFunc(c.counters(c.members), func(of algorithm.Counter) bool {
		return of.Limit.Properties().Slots
	})
	if len(counters) == 0 {
		return
	}
	algorithm.SetCost(counters, 1+upTo(c.T, counters[0].Limit.Max-1, "most"))
	for i := range counters {
		counters[i].Behind = 0
	}
	verdicts := c.upTo(c.now, counters)
	c.last = rapid.SampledFrom(verdicts).Draw(c.T, "whose answer")
	if algorithm.Passes(counters, verdicts) {
		for i := range counters {
			c.charges = append(c.charges, counters[i].Charged(&verdicts[i]))
		}
	}
}

func (c *caller) counters(members []*member) (counters []algorithm.Counter) {
	for _, m := range members {
		if oneIn(c.T, 12, "another limit") {
			m.limit = rapid.SampledFrom(m.family.limits).Draw(c.T, "limit")
		}
		counters = append(counters, algorithm.Counter{Key: []byte(m.key), Limit: m.limit, Cost: c.cost(m), Mark: c.mark(m), Behind: m.behind})
	}
	slices.SortStableFunc(counters, func(a, b algorithm.Counter) int { return int(a.Behind) - int(b.Behind) })
	return counters
}

func (c *caller) cost(m *member) int64 {
	switch {
	case oneIn(c.T, 16, "nothing"):
		return 0
	case m.limit.Kind == algorithm.Concurrency:
		return 1
	default:
		return 1 + upTo(c.T, m.limit.Max-1, "cost")
	}
}

// mark returns a note of any bytes, or a holder: usually a new one, sometimes one that has a slot.
func (c *caller) mark(m *member) string {
	switch m.limit.Kind {
	case algorithm.SlidingLog:
		return rapid.SampledFrom([]string{"", "note", "\x00\xff\r\n", "ä note of many words, longer than any entry without one"}).Draw(c.T, "note")
	case algorithm.Concurrency:
		if !oneIn(c.T, 10, "the same holder") {
			c.holders++
		}
		return fmt.Sprint("holder ", c.holders)
	default:
		return ""
	}
}

// look compares the answers of members to one permit, without a charge.
func (c *caller) look(members []*member) {
	var counters []algorithm.Counter
	for _, m := range members {
		counters = append(counters, algorithm.Counter{Key: []byte(m.key), Limit: m.limit, Cost: 1})
	}
	c.decide(false, c.now, counters)
}

// refund gives back an earlier charge or a part of it, sometimes twice.
func (c *caller) refund() {
	if len(c.charges) == 0 {
		return
	}
	i := len(c.charges) - 1 - rapid.IntRange(0, len(c.charges)-1).Draw(c.T, "which charge")
	charge := c.charges[i]
	if oneIn(c.T, 3, "a part") {
		charge.Cost = 1 + upTo(c.T, charge.Cost-1, "so much")
	}
	together := []algorithm.Charge{charge}
	if i > 0 && string(c.charges[i-1].Key) != string(charge.Key) && oneIn(c.T, 3, "with another") {
		together = append(together, c.charges[i-1])
	}
	c.giveBack(together...)
}

// each calls do with every member of an algorithm.
func (c *caller) each(kind algorithm.Kind, do func(*member)) {
	for _, m := range c.members {
		if m.limit.Kind == kind {
			do(m)
		}
	}
}

// takeTurn reserves up to ten times the rate, or more than is possible.
func (c *caller) takeTurn(m *member) {
	counter := algorithm.Counter{Key: []byte(m.key), Limit: m.limit, Cost: upTo(c.T, m.limit.Reserved, "reserved")}
	v := c.reserve(counter, upTo(c.T, 2*m.family.window, "patience"))
	c.last = v
	if charged := counter.Charged(&v); charged.Cost > 0 {
		c.charges = append(c.charges, charged)
	}
}

// keepSlot renews the slot of an earlier call, whether or not it is still held.
func (c *caller) keepSlot(m *member) {
	holder := fmt.Sprint("holder ", upTo(c.T, int64(c.holders), "holder"))
	c.renew(algorithm.Charge{Key: []byte(m.key), Limit: m.limit, Mark: holder})
}
