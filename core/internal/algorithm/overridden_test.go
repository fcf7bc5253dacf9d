package algorithm_test

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/accesslimit/accesslimit/core/internal/algorithm"
	"github.com/accesslimit/accesslimit/core/internal/memstore"
	"github.com/accesslimit/accesslimit/internal/scriptclock"
)

// set is a script that sets a key to a string, or removes it, as an operator does. It ignores the
// clock.
var (
	set     = algorithm.Script{Text: scriptclock.Lines + "return {redis.call('SET', KEYS[1], ARGV[1]) and now}"}
	pushed  = algorithm.Script{Text: scriptclock.Lines + "redis.call('DEL', KEYS[1]) return {redis.call('RPUSH', KEYS[1], 'x') and now}"}
	expires = algorithm.Script{Text: scriptclock.Lines + "return {now, redis.call('DEL', KEYS[1])}"}
)

// overridingRule is a rule of a trace, with what an operator has set for its subject.
type overridingRule struct {
	name    string
	own     algorithm.Limit
	terms   algorithm.Terms // of own, but for its numbers
	further *algorithm.Limit
	ban     *algorithm.Limit
	dry     bool
	spared  bool
	set     *algorithm.Override // nil: nothing, or nothing that makes sense
}

// operator changes overrides and makes calls on three stores: Redis, this process, and a plain one
// that knows no overrides and is asked with the limits that hold.
type operator struct {
	*rapid.T
	*engines
	plain   *memstore.Store
	rules   []*overridingRule
	charges []algorithm.Charge
	holders int
	last    algorithm.Verdict
}

func newOperator(t *rapid.T) *operator {
	o := &operator{T: t, engines: newEngines(early + upTo(t, hour, "begin"))}
	o.plain = memstore.New(1000, func() int64 { return o.now })
	o.plain.Close()
	for i := range rapid.IntRange(1, 2).Draw(t, "rules") {
		o.rules = append(o.rules, o.newRule(fmt.Sprint("rule", i)))
	}
	return o
}

func (o *operator) newRule(name string) *overridingRule {
	kinds := slices.DeleteFunc(algorithm.Kinds(), func(k algorithm.Kind) bool { return !k.Limits() })
	kind := rapid.SampledFrom(kinds).Draw(o.T, "algorithm")
	r := &overridingRule{name: name, terms: algorithm.Terms{Window: rapid.SampledFrom([]int64{second, 61 * 60 * second, 3 * hour}).Draw(o.T, "window")}}
	r.own = o.limit(kind, r.terms)
	if rapid.Bool().Draw(o.T, "also") {
		r.further = new(algorithm.Windowed(algorithm.FixedWindow, 1+upTo(o.T, 20, "max"), 7*second))
	}
	if oneIn(o.T, 3, "ban") {
		r.ban = new(algorithm.Banned(2, 3*second, hour, second))
	}
	r.dry, r.spared = oneIn(o.T, 4, "dry"), oneIn(o.T, 4, "unlimited plan")
	return r
}

func (o *operator) limit(kind algorithm.Kind, terms algorithm.Terms) algorithm.Limit {
	terms.Max, terms.Burst = 1+upTo(o.T, 30, "max"), 1+upTo(o.T, 30, "burst")
	l, err := algorithm.Make(kind, terms)
	if err != nil {
		o.Fatalf("%v", err)
	}
	return l
}

func (r *overridingRule) key() string { return "{s}:" + r.name + ":ov1" }

// change sets something in place of an override.
func (o *operator) change() {
	r := rapid.SampledFrom(o.rules).Draw(o.T, "whose override")
	of := algorithm.Override{Span: r.own.Span(), Set: o.now, Author: "alice", Note: "contract 17"}
	switch rapid.IntRange(0, 7).Draw(o.T, "override") {
	default:
		made, err := r.own.Override(1+upTo(o.T, 40, "max"), upTo(o.T, 40, "burst"))
		if err != nil {
			o.Fatalf("%v", err)
		}
		of = made
	case 3:
		of.What = algorithm.OverrideUnlimited
	case 4:
		of.What = algorithm.OverrideBlocked
	case 5:
		other := algorithm.Windowed(algorithm.FixedWindow, 1, 8*second)
		of, _ = other.Override(5, 0)
	case 6:
		o.nonsense(r)
		return
	case 7:
		r.set = nil
		o.process.RemoveOverride([]byte(r.key()))
		o.add(step{said: "no override", script: &expires, keys: []string{r.key()}, writes: []string{r.key()}})
		return
	}
	if oneIn(o.T, 3, "ends") {
		of.Ends = o.now + upTo(o.T, 3*r.own.Window, "ends in")
	}
	if r.set = &of; of.Span != r.own.Span() {
		r.set = nil
	}
	_, _, _ = o.process.SetOverride([]byte(r.key()), memstore.NamedOverride{Name: r.name, Subject: "s", Override: of}, 1_000)
	o.add(step{said: fmt.Sprintf("%+v", of), script: &set, keys: []string{r.key()}, argv: []any{stored(o.T, &of)}, writes: []string{r.key()}})
}

// nonsense writes what somebody may write by hand.
func (o *operator) nonsense(r *overridingRule) {
	r.set = nil
	o.process.RemoveOverride([]byte(r.key()))
	s := step{said: "nonsense", script: &set, keys: []string{r.key()}, writes: []string{r.key()}}
	switch sound, _ := r.own.Override(3, 3); rapid.IntRange(0, 3).Draw(o.T, "nonsense") {
	case 0:
		s.argv = []any{string(rapid.SliceOfN(rapid.Byte(), 0, 120).Draw(o.T, "bytes"))}
	case 1:
		text := stored(o.T, &sound)
		s.argv = []any{text[:rapid.IntRange(0, len(text)-1).Draw(o.T, "length")]}
	case 2:
		sound.Refill++
		s.argv = []any{stored(o.T, &sound)}
	case 3:
		s.script = &pushed
	}
	o.add(s)
}

// active returns what holds now in place of the rule's own limit: nil for nothing.
func (r *overridingRule) active(now int64) *algorithm.Override {
	if r.set == nil || r.set.Ends > 0 && r.set.Ends <= now {
		return nil
	}
	return r.set
}

// counters returns the counters of a call. The first of each rule has the rule's own limit.
func (o *operator) counters() (all []algorithm.Counter) {
	for n, r := range o.rules {
		q := &algorithm.OverrideQuery{Key: []byte(r.key()), Limit: &r.own}
		cost := upTo(o.T, 45, "cost")
		if oneIn(o.T, 6, "largest cost") {
			cost = algorithm.LargestCost
		}
		add := func(l *algorithm.Limit, own bool) {
			c := algorithm.Counter{
				Key: fmt.Appendf(nil, "{s}:%s:%t:%s", r.name, r.dry, l.Span()), Limit: l, Cost: cost, Lenient: r.dry, Override: q, Own: own, CountsIfOverridden: r.spared,
			}
			if l.Properties().Slots {
				o.holders++
				c.Cost, c.Mark = 1, fmt.Sprint("holder", o.holders)
			}
			if r.dry && r.further != nil {
				c.Group = uint16(n + 1)
			}
			all = append(all, c)
		}
		first := len(all)
		add(&r.own, true)
		if r.further != nil {
			add(r.further, false)
		}
		if r.ban != nil {
			watched := []int{first, first + 1}[:len(all)-first]
			all = append(all, algorithm.Counter{Key: fmt.Appendf(nil, "{s}:%s:%t:ban", r.name, r.dry), Limit: r.ban, Watched: watched, Lenient: r.dry})
		}
	}
	return all
}

// ruleOf returns the rule of a counter.
func (o *operator) ruleOf(c *algorithm.Counter) *overridingRule {
	i := slices.IndexFunc(o.rules, func(r *overridingRule) bool { return r.key() == string(c.Override.Key) })
	return o.rules[i]
}

// plainly returns the counters that a call is decided over if every rule has the limit that holds
// for it, in the plain store, and their places. stopped reports that the call is refused.
func (o *operator) plainly(counters []algorithm.Counter) (kept []algorithm.Counter, places []int, stopped bool) {
	costs := make(map[string]int64) // of the rules, the largest that fits
	tooCostly := make(map[string]bool)
	for round := range 3 {
		kept, places = nil, nil
		for i, c := range counters {
			if q := c.Override; q != nil {
				c.Override = nil
				r := o.ruleOf(&counters[i])
				switch of := r.active(o.now); {
				case of != nil && of.What != algorithm.OverrideLimit:
					stopped = stopped || of.What == algorithm.OverrideBlocked && !c.Lenient
					continue
				case of != nil && counters[i].Own:
					terms := r.terms
					terms.Max, terms.Burst = of.Max, of.Burst
					made, err := algorithm.Make(r.own.Kind, terms)
					if err != nil {
						o.Fatalf("%v", err)
					}
					c.Limit = &made
				case of == nil && r.spared:
					continue
				}
				if most, ok := costs[r.name]; c.Cost == algorithm.LargestCost && (round == 0 && (!ok || c.Limit.Max < most)) {
					costs[r.name] = c.Limit.Max
				}
				if c.Cost == algorithm.LargestCost && round > 0 {
					c.Cost = costs[r.name]
				}
				if round == 1 && c.Cost > c.Limit.Max {
					stopped, tooCostly[r.name] = stopped || !c.Lenient, true
				}
				if tooCostly[r.name] {
					continue
				}
			}
			kept, places = append(kept, c), append(places, i)
		}
	}
	if stopped {
		return nil, nil, true
	}
	for i := range kept {
		kept[i].Watched = kept[i].WatchedIn(places)
	}
	return kept, places, false
}

// A rule with an override decides as the same rule with that limit, in both engines, whatever
// operators and callers do.
func TestOverridesDecideAsTheLimitsThemselves(t *testing.T) {
	s := startServer(t)
	rapid.Check(t, func(t *rapid.T) {
		o := newOperator(t)
		for range several(t) {
			o.now = min(late, o.now+later(t, o.rules[0].own.Window, o.last))
			switch rapid.IntRange(0, 12).Draw(t, "what") {
			case 0, 1:
				o.change()
			case 2:
				o.giveBack()
			case 3:
				o.takeUpTo()
			case 4:
				o.reserve()
			case 12:
				o.owe()
			case 5, 6:
				o.come()
			default:
				o.call(!oneIn(t, 6, "look"))
			}
		}
		o.run(t, s, timed, nil)
	})
}
