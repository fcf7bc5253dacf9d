package core

import (
	"slices"

	"github.com/accesslimit/accesslimit/core/internal/algorithm"
	"github.com/accesslimit/accesslimit/core/internal/rediskey"
)

// addCounters adds the counters of the rules that apply. It leaves out rules that need a login for
// anonymous callers, calls that cost nothing, and counters that the call has already. It stops at
// the first reason to refuse, and returns the rule that gave it.
func (c *call) addCounters(anonymous bool, subject string) (stopped *appliedRule, reason Reason, err error) {
	for i := range c.applied {
		a := &c.applied[i]
		if anonymous && a.rule.NeedLogin {
			continue
		}
		c.deciding = a.named
		switch reason, err := c.addRule(i, subject); {
		case reason == Allowed:
		case a.rule.DryRun:
			c.reportUncounted(a)
		case a.rule.Soft:
			c.goOnUncounted(a, err)
		default:
			c.deciding = nil
			return a, reason, err
		}
	}
	c.deciding = nil
	// Leased permits cannot be taken back from a call that another counter refuses.
	if len(c.counters) == 1 {
		c.counters[0].Lease = int64(c.limits[0].rule.Lease)
	}
	return nil, Allowed, nil
}

// reportUncounted reports a rule in DryRun that would have refused the call before its counter was
// asked.
func (c *call) reportUncounted(a *appliedRule) {
	a.named.tally.Count(string(DryRunExceeded), string(FromNobody), 0, &c.place)
	c.report(&Decision{Allowed: true, Reason: DryRunExceeded, Rule: a.named.name, Limit: a.rule.limits[0], Source: FromNobody})
}

// addRule adds the counters of the rule at i: one for each limit, and then its ban.
func (c *call) addRule(i int, subject string) (Reason, error) {
	a := &c.applied[i]
	if a.rule.NeedLogin && a.rule.lenient { // a lenient rule asks nobody to log in
		switch user, err := c.User(); {
		case err != nil && a.rule.Soft:
			return IdentifyFailed, err
		case user == "":
			return Allowed, nil
		}
	}
	in, err := c.ruleInputs(i, subject)
	if err != nil {
		return IdentifyFailed, err
	}
	before := len(c.counters)
	c.watched, c.bySize = c.watched[:0], in.bySize
	var override *algorithm.OverrideQuery
	spared := in.own == nil
	if a.rule.Overrides {
		override = c.askForOverride(a, in.bySize)
		if spared {
			in.own = a.named.limits[0]
		}
	}
	if in.own != nil {
		if reason := c.addLimits(a, in, override, spared); reason != Allowed {
			c.counters, c.verdicts, c.limits = c.counters[:before], c.verdicts[:before], c.limits[:before]
			return reason, nil
		}
	}
	if a.rule.ban != nil { // it also holds for calls that cost nothing
		c.addBan(a)
	}
	return Allowed, nil
}

// addLimits adds the counters of a rule's limits, and notes the places of those that a ban watches.
// The limits obey the override, unless it is nil.
func (c *call) addLimits(a *appliedRule, in ruleInputs, override *algorithm.OverrideQuery, spared bool) Reason {
	var l lenience
	if a.rule.lenient {
		if l = c.lenience(a, in.own, in.cost); l.costly && a.rule.DryRun {
			return CostTooHigh
		}
	}
	for n, limit := range a.named.limits {
		if n == 0 {
			limit = in.own
		}
		if l.costly {
			in.cost = 0
		}
		at, reason := c.addLimit(a, limit, in.cost)
		switch {
		case reason != Allowed:
			return reason
		case at < 0:
			continue
		case a.rule.lenient:
			l = c.applyLenience(at, l)
		}
		c.watched = append(c.watched, at)
		if override != nil {
			c.mayBeOverridden(at, override, n == 0, spared)
		}
	}
	return Allowed
}

// ruleInputs holds what the functions of a rule returned for the call. It has no more than four
// fields, so that it is returned in registers. With five, a call took a ninth longer ("core alone,
// no headers" in BenchmarkCheck).
type ruleInputs struct {
	known  bool
	bySize bool
	cost   int64
	own    *ruleLimit // the caller's limit in place of the rule's; nil if the call is not counted, unless by an override
}

// ruleInputs returns the inputs of the rule at i, evaluated once.
func (c *call) ruleInputs(i int, subject string) (ruleInputs, error) {
	if i < len(c.inputs) && c.inputs[i].known {
		return c.inputs[i], nil
	}
	return c.evaluate(&c.applied[i], subject)
}

// evaluate calls the functions of a rule, except Note.
func (c *call) evaluate(a *appliedRule, subject string) (in ruleInputs, err error) {
	in.known, in.cost = true, c.cost(a)
	in.bySize = c.bySize
	if in.cost == 0 && a.rule.ban == nil && !a.rule.Overrides {
		return in, nil
	}
	if err := c.findSubject(a, subject); err != nil || in.cost == 0 {
		return in, err
	}
	in.own = a.named.limits[0]
	if a.rule.Plan != nil || a.rule.LimitFor != nil {
		in.own = c.planned(a)
	}
	if a.rule.Overrides {
		in.boundCost()
		return in, nil
	}
	if in.own != nil && in.cost == algorithm.LargestCost {
		in.cost = largestCost(in.own, a.named.limits)
	}
	return in, nil
}

// addBan adds the ban of a rule. It watches the rule's counters. If an earlier rule of this call
// has the same ban, that ban watches them too.
func (c *call) addBan(a *appliedRule) {
	counter := c.addCounter()
	counter.Key = rediskey.Append(counter.Key, c.limiter.keyHead, c.subjects[a.from:a.to], a.named.banKey)
	if at := c.earlier(); at >= 0 {
		c.dropLast()
		c.watched = append(c.watched, c.counters[at].Watched...)
		c.counters[at].Watched = placesOf(c.watched)
		return
	}
	counter.Limit, counter.Watched, counter.Dry, counter.Personal = a.rule.ban, placesOf(c.watched), a.rule.lenient, a.perUser()
	counter.Group = 0
	a.rule.OnStoreError.apply(counter)
	c.limits = append(c.limits, callLimit{appliedRule: a, ruleLimit: a.named.limits[0], limit: &a.rule.limits[0], isBan: true})
}

// usualPlaces holds the lists that placesOf usually returns, so that it need not allocate them.
var usualPlaces = [...]int{0, 1, 2, 3, 4, 5, 6, 7}

// placesOf returns the places in order and without repetition, in a list that must not be written
// to. It sorts its argument.
func placesOf(places []int) []int {
	slices.Sort(places)
	places = slices.Compact(places)
	if len(places) == 0 {
		return nil
	}
	first, last := places[0], places[len(places)-1]
	if last-first == len(places)-1 && last < len(usualPlaces) {
		return usualPlaces[first : last+1 : last+1]
	}
	return slices.Clone(places)
}

// addLimit adds the counter of a rule's limit, and returns its place. If an earlier rule has the
// same counter, addLimit merges the two: the call is charged once, and the stricter limit holds. The
// place is -1 if the rule is soft and the earlier one is not.
func (c *call) addLimit(a *appliedRule, limit *ruleLimit, cost int64) (at int, reason Reason) {
	if limit.compiled.Properties().Slots {
		cost = min(cost, 1)
	}
	if cost > limit.compiled.Max && !a.rule.Overrides { // with Overrides, only the store knows the limit
		return 0, CostTooHigh
	}
	counter := c.addCounter()
	counter.Key = rediskey.Append(counter.Key, c.limiter.keyHead, c.subjects[a.from:a.to], limit.keyTail)
	counter.Limit, counter.Cost, counter.Dry, counter.Personal = limit.compiled, cost, a.rule.lenient, a.perUser()
	counter.Group = 0
	counter.Mark = c.mark(a, limit)
	a.rule.OnStoreError.apply(counter)
	at = c.earlier()
	if at >= 0 {
		return c.mergeLast(at, a, limit)
	}
	c.limits = append(c.limits, callLimit{})
	added := &c.limits[len(c.limits)-1] // filled in place: see addCounter
	added.appliedRule = a
	added.use(limit)
	return len(c.counters) - 1, Allowed
}

// mark returns what a counter keeps of the call: a note, or the name of the slot's holder.
func (c *call) mark(a *appliedRule, limit *ruleLimit) string {
	switch {
	case c.recalling: // nothing is charged, so no note is kept
		return ""
	case limit.compiled.Properties().Slots:
		if c.holder == "" { // one for all slots, because they are renewed under one name
			c.holder = c.limiter.inFlight.NewHolder()
		}
		return c.holder
	case limit.compiled.Properties().Notes && a.rule.Note != nil:
		return cutNote(a.rule.Note(c))
	default:
		return ""
	}
}

// findSubject appends the rule's subject to c.subjects.
func (c *call) findSubject(a *appliedRule, subject string) error {
	a.from = len(c.subjects)
	switch {
	case subject != "":
		c.subjects = append(c.subjects, subject...)
	case a.rule.Key != nil:
		key, err := a.rule.Key(c)
		if err != nil {
			return err
		}
		c.subjects = append(c.subjects, key...)
	case a.rule.NeedLogin:
		c.subjects = append(append(c.subjects, "user:"...), c.user...)
	}
	if len(c.subjects) == a.from {
		c.subjects = c.limiter.clientIPs.AppendSubject(c.subjects, c.addressToCount())
	}
	a.to = len(c.subjects)
	return nil
}

// cost returns what the call costs by the rule.
func (c *call) cost(a *appliedRule) int64 {
	c.bySize = false
	if a.rule.Cost == nil {
		return 1
	}
	cost := a.rule.Cost(c)
	if cost < 0 {
		c.limiter.operatorLog.NegativeCost(a.named.name, cost)
		return 1
	}
	return c.permits(cost)
}
