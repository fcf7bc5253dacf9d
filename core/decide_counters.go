package core

import (
	"slices"

	"github.com/accesslimit/accesslimit/core/internal/rediskey"
)

// count forms the counters of the rules that apply. A rule that wants a login is left out for nobody, and so are a call that
// costs nothing and a counter that this call is charged to already. given is the subject, "" for each rule's own. It stops at
// the first reason to refuse.
func (c *call) count(nobody bool, given string) (stopped *asked, reason Reason, err error) {
	for i := range c.applying {
		a := &c.applying[i]
		if nobody && a.rule.NeedLogin {
			continue
		}
		c.deciding = a.policy
		switch reason, err := c.countRule(i, given); {
		case reason == Allowed:
		case a.rule.DryRun:
			c.reportUntried(a)
		default:
			c.deciding = nil
			return a, reason, err
		}
	}
	c.deciding = nil
	if len(c.counters) == 1 { // leased permits cannot be taken back from a call that another counter refuses
		c.counters[0].Lease = int64(c.asked[0].rule.Lease)
	}
	return nil, Allowed, nil
}

// reportUntried tells of a rule in DryRun that would have refused before it counted.
func (c *call) reportUntried(a *asked) {
	a.policy.tally.Count(string(DryRunExceeded), string(FromNobody), false, c.stripe)
	c.report(&Decision{Allowed: true, Reason: DryRunExceeded, Rule: a.policy.name, Limit: *a.limit, Source: FromNobody})
}

// countRule adds the counters of the rule at i: one for each limit, and after them its ban.
func (c *call) countRule(i int, given string) (Reason, error) {
	a := &c.applying[i]
	if a.rule.NeedLogin && a.rule.DryRun { // it sends nobody to the login either
		if user, err := c.User(); err != nil || user == "" {
			return Allowed, nil
		}
	}
	var w weighed
	if i < len(c.weighed) && c.weighed[i].known {
		w = c.weighed[i]
	} else {
		var err error
		if w, err = c.weigh(a, given); err != nil {
			return IdentifyFailed, err
		}
	}
	before := len(c.counters)
	c.watched, c.bySize = c.watched[:0], w.bySize
	if w.own != nil {
		for i, q := range a.policy.quotas {
			if i == 0 {
				q = w.own
			}
			at, reason := c.charge(a, q, w.cost)
			if reason != Allowed {
				c.counters, c.verdicts, c.asked = c.counters[:before], c.verdicts[:before], c.asked[:before]
				return reason, nil
			}
			c.watched = append(c.watched, at)
		}
	}
	if a.rule.ban != nil { // it holds for calls that cost nothing, too
		c.addBan(a)
	}
	return Allowed, nil
}

// weighed holds what the functions of a rule returned for the call.
type weighed struct {
	known  bool
	bySize bool
	cost   int64
	own    *quota // the caller's limit in place of the rule's; nil: the call is not counted
}

// weigh calls the functions of a rule, except Note.
func (c *call) weigh(a *asked, given string) (w weighed, err error) {
	w.known, w.cost = true, c.cost(a)
	w.bySize = c.bySize
	if w.cost == 0 && a.rule.ban == nil {
		return w, nil
	}
	if err := c.findSubject(a, given); err != nil || w.cost == 0 {
		return w, err
	}
	w.own = a.policy.quotas[0]
	if a.rule.Plan != nil || a.rule.LimitFor != nil {
		w.own = c.planned(a)
	}
	if w.own != nil && w.bySize && w.cost == unknownSize {
		w.cost = fitting(w.own, a.policy.quotas)
	}
	return w, nil
}

// addBan adds the ban of a rule. It watches the rule's counters. If an earlier rule of this call
// has the same ban, that ban watches them too.
func (c *call) addBan(a *asked) {
	counter := c.addCounter()
	counter.Key = rediskey.Append(counter.Key, c.limiter.keyHead, c.subjects[a.from:a.to], a.policy.banKey)
	if at := c.earlier(); at >= 0 {
		c.dropLast()
		c.watched = append(c.watched, c.counters[at].Watched...)
		c.counters[at].Watched = placesOf(c.watched)
		return
	}
	counter.Limit, counter.Watched, counter.Dry, counter.Personal = a.rule.ban, placesOf(c.watched), a.rule.DryRun, a.personal()
	a.rule.OnStoreError.apply(counter)
	ban := *a
	ban.isBan, ban.quota = true, a.policy.quotas[0]
	c.asked = append(c.asked, ban)
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

// charge adds the counter of a rule's limit. Where an earlier rule has the same counter, it merges the two: the call is charged
// once, and of two limits (by user and by IP, for nobody) the smaller holds. It returns where the counter stands.
func (c *call) charge(a *asked, q *quota, cost int64) (at int, reason Reason) {
	if q.compiled.Properties().Slots {
		cost = 1
	}
	if cost > q.compiled.Max {
		return 0, CostTooHigh
	}
	counter := c.addCounter()
	counter.Key = rediskey.Append(counter.Key, c.limiter.keyHead, c.subjects[a.from:a.to], q.keyTail)
	counter.Limit, counter.Cost, counter.Dry, counter.Personal = q.compiled, cost, a.rule.DryRun, a.personal()
	counter.Mark = c.mark(a, q)
	a.rule.OnStoreError.apply(counter)
	at = c.earlier()
	if at < 0 {
		c.asked = append(c.asked, asked{})
		of := &c.asked[len(c.asked)-1] // filled where it stands: see addCounter
		of.rule, of.policy, of.from, of.to = a.rule, a.policy, a.from, a.to
		of.asks(q)
		return len(c.counters) - 1, Allowed
	}
	of := *a
	of.asks(q)
	earlier := &c.counters[at]
	earlier.Cost = max(earlier.Cost, cost)
	earlier.Required = earlier.Required || counter.Required
	earlier.Personal = earlier.Personal || counter.Personal
	earlier.LocalShare = stricter(earlier.LocalShare, counter.LocalShare)
	c.dropLast()
	c.tighten(at, &of)
	if earlier.Cost > earlier.Limit.Max {
		return at, CostTooHigh
	}
	return at, Allowed
}

// mark is what a counter keeps of the call: its note, or the name of who holds the slot.
func (c *call) mark(a *asked, q *quota) string {
	switch {
	case c.recalls: // nothing is charged, so no note is kept
		return ""
	case q.compiled.Properties().Slots:
		if c.holder == "" { // one for all of them, because they are renewed under one name
			c.holder = c.limiter.newHolder()
		}
		return c.holder
	case q.compiled.Properties().Notes && a.rule.Note != nil:
		return cutNote(a.rule.Note(c))
	default:
		return ""
	}
}

// findSubject says whom to count.
func (c *call) findSubject(a *asked, given string) error {
	a.from = len(c.subjects)
	switch {
	case given != "":
		c.subjects = append(c.subjects, given...)
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
		c.subjects = c.limiter.clientIPs.appendSubject(c.subjects, c.countedByIP())
	}
	a.to = len(c.subjects)
	return nil
}

// cost is what the call weighs.
func (c *call) cost(a *asked) int64 {
	c.bySize = false
	if a.rule.Cost == nil {
		return 1
	}
	cost := a.rule.Cost(c)
	if cost < 0 {
		c.limiter.complains.negativeCost(a.policy.name, cost)
		return 1
	}
	return int64(cost)
}
