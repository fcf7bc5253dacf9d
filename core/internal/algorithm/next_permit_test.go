package algorithm_test

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/accesslimit/accesslimit/core/internal/algorithm"
)

// quota is what an answer leaves to its caller: until a time, calls of so many permits, and no more.
// From then on, or a moment later, one permit more fits.
type quota struct {
	of          *algorithm.Limit
	left        int64
	until, then int64
}

// spender calls one counter on both engines, and checks what the answers leave.
type spender struct {
	*rapid.T
	*engines
	family family
	rates  []algorithm.Rate // of the charges
	quotas []quota
	last   algorithm.Verdict
}

// If nobody else calls, a caller can use as many permits as an answer says are left before the next
// one comes back, and no more, on both engines.
func TestNextPermit(t *testing.T) {
	s, all := startServer(t), families(t)
	for _, name := range []string{"sliding window", "sliding log", "fixed window", "calendar window", "token bucket"} {
		t.Run(name, rapid.MakeCheck(func(t *rapid.T) {
			of := rapid.SampledFrom(all[name]).Draw(t, "family")
			now := early + upTo(t, hour+3*of.window, "begin")
			if len(of.moments) > 0 {
				now = rapid.SampledFrom(of.moments).Draw(t, "moment") + upTo(t, 3*day, "after") - day
			}
			c := &spender{T: t, engines: newEngines(now), family: of}
			limit := rapid.SampledFrom(of.limits).Draw(t, "limit")
			for range several(t) {
				if c.pass(); oneIn(t, 12, "another limit") {
					limit = rapid.SampledFrom(of.limits).Draw(t, "limit")
				}
				c.call(limit, 1+upTo(t, limit.Max-1, "cost"))
			}
			c.run(t, s, timed, nil)
		}))
	}
}

// pass lets time pass, often until just before or after the next permit comes back.
func (c *spender) pass() {
	if len(c.quotas) > 0 && rapid.Bool().Draw(c.T, "to the next permit") {
		q := rapid.SampledFrom(c.quotas).Draw(c.T, "quota")
		c.now = min(late, max(c.now, rapid.SampledFrom([]int64{q.until - 1, q.until, q.then}).Draw(c.T, "to")))
		return
	}
	c.now = min(late, c.now+later(c.T, c.family.window, c.last))
}

// call makes a call, often for all that an earlier answer has left, or for one permit more.
func (c *spender) call(limit *algorithm.Limit, cost int64) {
	if len(c.quotas) > 0 && rapid.Bool().Draw(c.T, "what is left") {
		cost = min(limit.Max, max(1, c.quotas[len(c.quotas)-1].left+rapid.Int64Range(0, 1).Draw(c.T, "more")))
	}
	counters := []algorithm.Counter{{Key: []byte("spent"), Limit: limit, Cost: cost}}
	if counters[0].Merges() && rapid.Bool().Draw(c.T, "fast") {
		c.last = c.crowd(1, c.now, counters)[0]
	} else {
		c.last = c.decide(true, c.now, counters)[0]
	}
	c.check(limit, cost)
	c.leave(limit)
}

// check compares the answer with what earlier answers have left.
func (c *spender) check(limit *algorithm.Limit, cost int64) {
	passed := c.last.RetryAfter == 0
	for i := range c.quotas {
		q := &c.quotas[i]
		switch {
		case q.of != limit:
		case c.now < q.until && passed != (cost <= q.left):
			c.Fatalf("%s\npassed: %v, with %d left until %d", c.story(len(c.steps)-1), passed, q.left, q.until)
		case q.then > 0 && c.now >= q.then && cost <= q.left+1 && !passed:
			c.Fatalf("%s\nrefused, with one more than %d left at %d", c.story(len(c.steps)-1), q.left, q.then)
		}
		if passed {
			q.left, q.then = q.left-cost, 0
		}
	}
	if passed && !slices.Contains(c.rates, limit.Rate) {
		c.rates = append(c.rates, limit.Rate)
	}
	c.quotas = slices.DeleteFunc(c.quotas, func(q quota) bool { return passed && q.of != limit || c.now >= q.until && q.then == 0 })
}

// leave notes what the answer has left.
func (c *spender) leave(limit *algorithm.Limit) {
	next, v := limit.NextPermit(&c.last), &c.last
	if next == 0 || v.Remaining == 0 && v.RetryAfter > 0 {
		return
	}
	q := quota{of: limit, left: v.Remaining, until: c.now + next}
	otherRate := slices.ContainsFunc(c.rates, func(r algorithm.Rate) bool { return r != limit.Rate })
	if onlyUse := limit.Max-v.Remaining == v.Taken; !otherRate && (onlyUse || limit.Kind != algorithm.SlidingWindow) {
		q.then = q.until + limit.Tick
	}
	if v.Remaining == 0 {
		q.then, q.until = min(q.then, q.until), max(c.now, q.until-limit.Tick)
	}
	c.quotas = append(c.quotas, q)
}

// At each second of a list, one permit is used. Then the next one comes back so many milliseconds
// later.
func TestNextPermitOfEachAlgorithm(t *testing.T) {
	const minute = 60 * second
	for _, test := range []struct {
		kind               algorithm.Kind
		unused, one, other int64 // of 10 permits: none is used; one at 0 s; another at 2 s
		last               int64 // of 2 permits: the same, so that none is left
	}{
		{algorithm.SlidingWindow, 60_000, 61_875, 1_750, 0},
		{algorithm.SlidingLog, 60_000, 60_000, 0, 0},
		{algorithm.FixedWindow, 60_000, 60_000, 58_000, 58_000},
		{algorithm.CalendarWindow, 60_000, 60_000, 58_000, 58_000},
		{algorithm.TokenBucket, 6_000, 6_000, 4_000, 28_000},
		{algorithm.Concurrency, 0, 0, 0, 0},
	} {
		next := func(most int64, at ...int64) int64 {
			c := counter{limit: must(algorithm.Make(test.kind, algorithm.Terms{Max: most, Window: minute, Burst: most}))}
			v := c.look(early, 1)
			for _, at := range at {
				v = c.decide(early+at*second, 1)
			}
			return c.limit.NextPermit(&v) / millisecond
		}
		if got := [4]int64{next(10), next(10, 0), next(10, 0, 2), next(2, 0, 2)}; got != [4]int64{test.unused, test.one, test.other, test.last} {
			t.Errorf("%s: %d, want %+v", test.kind.Tag(), got, test)
		}
	}
}

// The verdict on permits that were leased, or are counted here while the store is away, does not say
// when one comes back.
func TestNextPermitIsNotKnown(t *testing.T) {
	limit := algorithm.Windowed(algorithm.FixedWindow, 10, second)
	for _, from := range []algorithm.Origin{algorithm.FromLease, algorithm.FromLocal, algorithm.FromRefusal, algorithm.FromNobody} {
		if got := limit.NextPermit(&algorithm.Verdict{ResetAfter: 7, From: from}); got != 0 {
			t.Errorf("%v: %d", from, got)
		}
	}
}

func must(l algorithm.Limit, err error) algorithm.Limit {
	if err != nil {
		panic(err)
	}
	return l
}
