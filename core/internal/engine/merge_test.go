package engine_test

import (
	"testing"

	"github.com/accesslimit/accesslimit/core/internal/algorithm"
	"github.com/accesslimit/accesslimit/core/internal/engine"
)

// Rules with one counter charge it once, by the largest cost, and the strictest numbers hold.
func TestMerge(t *testing.T) {
	required := func(r *engine.Rule) { r.Required = true }
	share := func(part float64) func(r *engine.Rule) {
		return func(r *engine.Rule) { r.LocalShare = part }
	}
	for name, test := range map[string]struct {
		rules []by
		want  string
	}{
		"another subject":    {[]by{{Rule: hard("n", perDay(5))}, {Rule: hard("n", perDay(5)), subject: "b"}}, "n/0 1 of 5; n/0 1 of 5"},
		"another name":       {[]by{{Rule: hard("n", perDay(5))}, {Rule: hard("m", perDay(5))}}, "n/0 1 of 5; m/0 1 of 5"},
		"the larger cost":    {[]by{{Rule: hard("n", perDay(5)), cost: 3}, {Rule: hard("n", perDay(5)), cost: 2}}, "n/0 3 of 5, both 5+5, with 0"},
		"a later cost":       {[]by{{Rule: hard("n", perDay(5))}, {Rule: hard("n", perDay(5)), cost: 2}}, "n/0 2 of 5, both 5+5, with 0"},
		"the stricter":       {[]by{{Rule: hard("n", perDay(5))}, {Rule: hard("n", perDay(7))}}, "n/0 1 of 5, both 5+5, with 1"},
		"the later stricter": {[]by{{Rule: hard("n", perDay(7))}, {Rule: hard("n", perDay(5))}}, "n/0 1 of 5, both 5+5, with 0"},
		"of three":           {[]by{{Rule: hard("n", perDay(7))}, {Rule: hard("n", perDay(5))}, {Rule: hard("n", perDay(6))}}, "n/0 1 of 5, both 5+5, with 0, with 2"},
		"the last of three":  {[]by{{Rule: hard("n", perDay(6))}, {Rule: hard("n", perDay(7))}, {Rule: hard("n", perDay(6))}}, "n/0 1 of 6, both 6+6, with 1, with 0"},
		"a further limit":    {[]by{{Rule: hard("n", perDay(7), perHour(3))}, {Rule: hard("n", perHour(2))}}, "n/0 1 of 7; n/0 1 of 2, both 2+2, with 0"},
		"which limit it is":  {[]by{{Rule: hard("n", perHour(3))}, {Rule: hard("n", perDay(7), perHour(2))}}, "n/1 1 of 2, both 2+2, with 0; n/0 1 of 7"},
		"buckets":            {[]by{{Rule: hard("n", bucket(10, 5))}, {Rule: hard("n", bucket(8, 20))}}, "n/0 1 of 5, both 8+5, with 0"},
		"buckets, reversed":  {[]by{{Rule: hard("n", bucket(8, 20))}, {Rule: hard("n", bucket(10, 5))}}, "n/0 1 of 5, both 8+5, with 1"},
		"three buckets":      {[]by{{Rule: hard("n", bucket(8, 20))}, {Rule: hard("n", bucket(10, 5))}, {Rule: hard("n", bucket(9, 4))}}, "n/0 1 of 4, both 8+4, with 1, with 2"},
		"policies":           {[]by{{Rule: with(hard("n", perDay(5)), required), personal: true}, {Rule: hard("n", perDay(5))}}, "n/0 1 of 5, both 5+5, required, personal, with 0"},
		"later policies":     {[]by{{Rule: hard("n", perDay(5))}, {Rule: with(hard("n", perDay(5)), required), personal: true}}, "n/0 1 of 5, both 5+5, required, personal, with 0"},
		"shares":             {[]by{{Rule: with(hard("n", perDay(5)), share(.5))}, {Rule: with(hard("n", perDay(5)), share(.25))}}, "n/0 1 of 5, both 5+5, share 0.25, with 0"},
		"one share":          {[]by{{Rule: with(hard("n", perDay(5)), share(.5))}, {Rule: hard("n", perDay(5))}}, "n/0 1 of 5, both 5+5, share 0.5, with 0"},
		"a later share":      {[]by{{Rule: hard("n", perDay(5))}, {Rule: with(hard("n", perDay(5)), share(.5))}}, "n/0 1 of 5, both 5+5, share 0.5, with 0"},
		"hard before soft":   {[]by{{Rule: hard("n", perDay(5)), cost: 2}, {Rule: soft("n", perDay(3))}}, "n/0 2 of 5"},
		"soft before hard":   {[]by{{Rule: soft("n", perDay(3))}, {Rule: hard("n", perDay(5)), cost: 2}}, "n/0 2 of 5"},
		"soft between":       {[]by{{Rule: hard("m", perDay(5))}, {Rule: soft("n", perDay(3))}, {Rule: hard("k", perDay(3))}, {Rule: hard("n", perDay(4))}}, "m/0 1 of 5; n/0 1 of 4; k/0 1 of 3"},
		"soft limits":        {[]by{{Rule: soft("n", perDay(3))}, {Rule: soft("n", perDay(2))}}, "n/0 1 of 2, both 2+2, behind 1, with 0"},
		"a plan":             {[]by{{Rule: hard("n", perDay(9), perHour(5)), own: ptr("n", perDay(2))}}, "n/0 1 of 2; n/1 1 of 5"},
		"one of a plan":      {[]by{{Rule: hard("n", perDay(9)), own: ptr("n", perDay(4))}, {Rule: hard("n", perDay(9))}}, "n/0 1 of 4, both 4+4, with 1"},
		"unlimited":          {[]by{{Rule: hard("n", perDay(9), perHour(5)), unlimited: true}}, ""},
	} {
		c := newWorld(t).open().add(test.rules...)
		want(t, name, c.counters(), test.want)
		if r := c.Costly().By; r != nil {
			t.Errorf("%s: %s is costly", name, r.Rule.Name)
		}
		if fits := c.Decide(background); !fits || c.Passed() != (c.Len() > 0) {
			t.Errorf("%s: %s", name, c.verdicts())
		}
	}
}

// Two limits of one call have keys of their own, however they were merged.
func TestKeys(t *testing.T) {
	computed := windows(algorithm.SlidingLog, 3, day)
	c := newWorld(t).open().add(
		by{Rule: soft("n", perDay(3))}, by{Rule: hard("k", perDay(5))}, by{Rule: hard("n", perDay(4), perHour(2))},
		by{Rule: hard("m", perDay(9)), own: &computed})
	got := ""
	for i := range c.Len() {
		got += string(c.Counter(i).Key) + " "
	}
	want(t, "keys", got, "p:{a}:n:fw1:86400000000 p:{a}:k:fw1:86400000000 p:{a}:n:fw1:3600000000 p:{a}:m:sl3:86400000000 ")
}

// A call takes one slot of each limit of slots, under one name, and leaves notes in logs only. No
// marks are made if nothing will be charged.
func TestMarks(t *testing.T) {
	rules := []by{
		{Rule: hard("n", slots(2)), cost: 5, note: "note"}, {Rule: hard("m", perDay(4), logged(2), slots(1)), cost: 2, note: "note"},
		{Rule: hard("k", logged(2))},
	}
	w := newWorld(t)
	c := w.open()
	if c.add(rules...); c.Holder() != "holder1" {
		t.Errorf("the holder is %q", c.Holder())
	}
	want(t, "marked", c.counters(), "n/0 1 of 2, mark holder1; m/0 2 of 4; m/1 2 of 2, mark note; m/2 1 of 1, mark holder1; k/0 1 of 2")
	c.Clear()
	if c.LookOnly(true); !c.LooksOnly() {
		t.Error("the call does not know that it only looks")
	}
	c.add(rules...)
	want(t, "unmarked", c.counters(), "n/0 1 of 2; m/0 2 of 4; m/1 2 of 2; m/2 1 of 1; k/0 1 of 2")
	c.Drop()
	c.LookOnly(false)
	c.Add(c.applied[len(c.applied)-len(rules)])
	want(t, "marked again", c.counters(), "n/0 1 of 2, mark holder2")
}

// A hard rule is costly if the cost is above one of its limits, or above the limit that it shares.
func TestCostly(t *testing.T) {
	for name, test := range map[string]struct {
		rules    []by
		rule     string
		counters string
	}{
		"a cost that fits":  {[]by{{Rule: hard("n", perDay(5), perHour(5)), cost: 5}}, "", "n/0 5 of 5; n/1 5 of 5"},
		"a cost above":      {[]by{{Rule: hard("n", perDay(5)), cost: 6}}, "n", ""},
		"a further limit":   {[]by{{Rule: hard("m", perDay(5))}, {Rule: hard("n", perDay(5), perHour(2)), cost: 3}}, "n", "m/0 1 of 5"},
		"the first":         {[]by{{Rule: hard("n", perDay(5)), cost: 6}, {Rule: hard("m", perDay(5)), cost: 6}}, "n", ""},
		"a shared limit":    {[]by{{Rule: hard("n", perDay(5)), cost: 5}, {Rule: hard("n", perDay(4))}}, "n", "n/0 5 of 4, both 4+4, with 0"},
		"as much as fits":   {[]by{{Rule: hard("n", perDay(5), slots(1), perHour(3)), cost: algorithm.LargestCost}}, "", "n/0 3 of 5; n/1 1 of 1, mark holder1; n/2 3 of 3"},
		"as much as a plan": {[]by{{Rule: hard("n", perDay(9)), cost: algorithm.LargestCost, own: ptr("n", perDay(2))}}, "", "n/0 2 of 2"},
		"as many as slots":  {[]by{{Rule: hard("n", slots(3)), cost: algorithm.LargestCost}}, "", "n/0 1 of 3, mark holder1"},
		"a reservation":     {[]by{{Rule: hard("n", bucket(2, 2)), cost: 20, reserves: true}}, "", "n/0 20 of 2"},
		"too large a turn":  {[]by{{Rule: hard("n", bucket(2, 2)), cost: 21, reserves: true}}, "n", ""},
	} {
		c := newWorld(t).open().add(test.rules...)
		rule, at := c.Costly().By, c.Costly().At
		if got := rule != nil; got && at != -1 || got != (test.rule != "") || got && rule.Rule.Name != test.rule {
			t.Errorf("%s: costly by %+v, want %q", name, rule, test.rule)
		}
		want(t, name, c.counters(), test.counters)
	}
}
