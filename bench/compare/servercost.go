package main

import (
	"fmt"
	"time"

	"github.com/accesslimit/accesslimit/bench/internal/harness"
	"github.com/accesslimit/accesslimit/bench/rivals"
)

// The cost of a decision is the time that the server's main thread takes for it. The scripts are
// recorded as the library sends them for calls on many keys at once, and then repeated on keys that
// are alive, over 2 connections with 64 scripts in flight on each.

const (
	costConnections = 2
	costDepth       = 64
)

// cost is the cost of one answer of a rival. Its setup brings the keys into their state before the
// calls.
type cost struct {
	script, answer string
	setup, calls   [][]byte
	decisions      int       // made by the calls if each is sent once
	micros         []float64 // of the main thread for a decision, one value for each round
	perSecond      []float64
	in, out        float64 // bytes of a decision and of its reply
}

// costFor returns what was measured of a script, or an empty cost.
func (r *report) costFor(script, answer string) *cost {
	for _, c := range r.costs {
		if c.script == script && c.answer == answer {
			return c
		}
	}
	return new(cost)
}

// costOf returns the microseconds of a decision.
func (r *report) costOf(script, answer string) harness.Spread {
	return harness.SpreadOf(r.costFor(script, answer).micros)
}

// costPairs returns the spread of the ratio of the costs of two answers within each round.
func (r *report) costPairs(script, answer, toScript, toAnswer string) harness.Spread {
	return harness.Pairs(r.costFor(script, answer).micros, r.costFor(toScript, toAnswer).micros)
}

// The answers for which a cost is measured.
const (
	allowedCall = "allowed"
	refusedCall = "refused"
	anyCall     = ""
)

// The names of the floors: calls that are measured beside the rivals' scripts.
const (
	nothingScript = "EVALSHA of nothing"
	plainSet      = "SET with PX"
)

func (b *bench) serverCost() error {
	keys := harness.NewKeys("key", b.costKeys)
	if err := b.server.Flush(); err != nil {
		return err
	}
	for _, r := range rivals.OnRedis {
		if r.Script && r.Name != rivals.Rueidis {
			if err := b.recordCosts(r.Name, keys); err != nil {
				return fmt.Errorf("%s: %w", r.Name, err)
			}
		}
	}
	floors, err := b.floors(keys)
	if err != nil {
		return err
	}
	b.costs = append(b.costs, floors...)
	for range b.costRounds {
		for _, i := range harness.Shuffled(len(b.costs)) {
			if err := b.measureCost(b.costs[i]); err != nil {
				return fmt.Errorf("%s, %s: %w", b.costs[i].script, b.costs[i].answer, err)
			}
		}
	}
	return nil
}

// costLimit admits all calls of a round, costUsedUp one. Another limiter than the one that used it
// up makes the refused calls, like another process, which cannot know that it will be refused.
var (
	costLimit  = rivals.Limit{Max: 1000, Window: rivals.Roomy.Window, Permit: 30 * time.Second}
	costUsedUp = rivals.Limit{Max: 1, Window: time.Hour, Permit: 5 * time.Minute}
)

func (b *bench) recordCosts(rival string, keys harness.Keys) error {
	allowed, err := b.record(rival, costLimit, keys)
	if err != nil {
		return err
	}
	first, err := b.record(rival, costUsedUp, keys)
	if err != nil {
		return err
	}
	refused, err := b.record(rival, costUsedUp, keys)
	b.costs = append(b.costs,
		&cost{script: rival, answer: allowedCall, setup: allowed, calls: allowed, decisions: keys.Len()},
		&cost{script: rival, answer: refusedCall, setup: first, calls: refused, decisions: keys.Len()})
	return err
}

// floors returns the least that any call costs.
func (b *bench) floors(keys harness.Keys) ([]*cost, error) {
	client := b.server.Client()
	sha, err := client.ScriptLoad(background, "return 0").Result()
	if err != nil {
		return nil, err
	}
	nothing, set := make([][]byte, keys.Len()), make([][]byte, keys.Len())
	for i := range keys.Len() {
		nothing[i] = harness.Encode([]string{"evalsha", sha, "1", keys.At(i)})
		set[i] = harness.Encode([]string{"set", keys.At(i), "1234567890123456", "px", "60000"})
	}
	return []*cost{
		{script: nothingScript, answer: anyCall, setup: nothing, calls: nothing, decisions: keys.Len()},
		{script: plainSet, answer: anyCall, setup: set, calls: set, decisions: keys.Len()},
	}, nil
}

func (b *bench) measureCost(c *cost) error {
	if err := b.server.Flush(); err != nil {
		return err
	}
	addr := b.server.Addrs()[0]
	if _, err := harness.Replay(addr, 0, c.setup, len(c.setup), costConnections, costDepth); err != nil {
		return err
	}
	before, err := b.server.Usage()
	if err != nil {
		return err
	}
	took, err := harness.Replay(addr, 0, c.calls, len(c.calls)*b.costTimes, costConnections, costDepth)
	if err != nil {
		return err
	}
	after, err := b.server.Usage()
	spent, decisions := after.Since(before), float64(c.decisions*b.costTimes)
	c.micros = append(c.micros, micros(spent.CPU)/decisions)
	c.perSecond = append(c.perSecond, decisions/took.Seconds())
	c.in, c.out = float64(spent.In)/decisions, float64(spent.Out)/decisions
	return err
}
