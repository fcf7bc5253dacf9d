package core

import "github.com/accesslimit/accesslimit/core/internal/algorithm"

// decide decides the call by these rules. The steps are: which rules apply, who calls, the
// counters, the store, the answer. subject replaces the key of every rule; "" keeps each rule's
// own.
func (c *call) decide(rules []*boundRule, subject string) Answer {
	needLogin := c.apply(rules)
	if len(c.applied) == 0 {
		return Answer{}
	}
	if err := c.Context().Err(); err != nil {
		return c.refuseBy(ContextEnded, &c.applied[0], err)
	}
	if c.refusedForEveryone(subject) {
		return c.answerVerdicts()
	}
	anonymous := false
	if needLogin != nil {
		user, err := c.User()
		if err != nil {
			return c.refuseUnidentified(needLogin, err, subject)
		}
		anonymous = user == ""
	}
	switch stopped, reason, err := c.addCounters(anonymous, subject); {
	case stopped != nil && reason == IdentifyFailed:
		return c.refuseUnidentified(stopped, err, subject)
	case stopped != nil:
		return c.refuseBy(reason, stopped, err)
	}
	if costly := c.askStore(!anonymous); costly != nil {
		return c.refuse(CostTooHigh, costly.named, costly.limit, nil)
	}
	switch {
	case anonymous && !c.overLimit() && !c.ended():
		return c.refuseBy(NotLoggedIn, needLogin, nil)
	case len(c.limits) == 0: // the call costs nothing, or has no limit
		first := &c.applied[0]
		return c.letPass(&Decision{Allowed: true, Reason: Allowed, Rule: first.named.name, Limit: first.rule.limits[0], Source: FromNobody})
	}
	return c.answerVerdicts()
}

// apply finds the rules that apply to the call. It returns the first of them that needs a login, or
// nil.
func (c *call) apply(rules []*boundRule) (needLogin *appliedRule) {
	login := -1
	for _, rule := range rules {
		if !rule.inScope(c.View, &c.readings, c.limiter.operatorLog) || rule.Skip != nil && c.skips(rule) {
			continue
		}
		if rule.NeedLogin && login < 0 && !rule.lenient {
			login = len(c.applied)
		}
		if rule.Soft {
			c.hasSoft = true
		}
		named := rule.namedFor(c.View, c.limiter.operatorLog)
		c.applied = append(c.applied, appliedRule{})
		a := &c.applied[len(c.applied)-1] // filled in place: see addCounter
		a.rule, a.named = rule, named
	}
	if login < 0 {
		return nil
	}
	return &c.applied[login]
}

// skips reports whether the rule's Skip ignores the call.
func (c *call) skips(rule *boundRule) bool {
	c.deciding = rule.namedFor(c.View, c.limiter.operatorLog)
	defer func() { c.deciding = nil }()
	return rule.Skip(c)
}

// askStore asks the store for verdicts on the counters, and charges them if charge is set. If the
// cost is above a limit that only the store knew of, askStore returns that limit, and nothing was
// charged.
func (c *call) askStore(charge bool) (costly *callLimit) {
	if len(c.counters) == 0 {
		return nil
	}
	if outer := c.limiter.outerCalls.Current(); outer != nil {
		if at := chargedOutside(outer, c.View, c.counters); at >= 0 {
			c.limiter.operatorLog.AttachedTwice(c.limits[at].named.name, c.Route())
		}
	}
	if local := c.limiter.local; local != nil && !charge {
		local.Look(c.Context(), c.counters, c.verdicts)
	} else {
		c.limiter.store.Decide(c.Context(), c.counters, charge, c.verdicts)
	}
	if c.asked > 0 {
		if costly := c.obeyOverrides(); costly != nil {
			return costly
		}
	}
	if c.hasCostly {
		c.exceedCostly()
	}
	if allFit(c.verdicts) { // nearly always, and then there is nothing else to do
		c.passed = charge
		return nil
	}
	c.limiter.inFlight.DropDoubtfulSlots(c.counters, c.verdicts)
	c.applyBans()
	c.passed = charge && !c.ended() && algorithm.Passes(c.counters, c.verdicts)
	c.logStoreFailures()
	return nil
}

// allFit reports whether the store answered for all counters of a call, and the call fits in each.
func allFit(verdicts []algorithm.Verdict) bool {
	for i := range verdicts {
		if v := &verdicts[i]; v.RetryAfter != 0 || v.Ended != nil || v.Failure() != nil {
			return false
		}
	}
	return true
}

// applyBans lets the first limit that a ban in force watches report the ban, which is listed.
func (c *call) applyBans() {
	for i := range c.limits {
		wait := c.verdicts[i].RetryAfter
		if !c.limits[i].isBan || wait == 0 {
			continue
		}
		c.noteBan(i)
		first := i
		if watched := c.counters[i].Watched; len(watched) > 0 {
			first = watched[0]
		}
		c.limits[first].banned = true
		v := &c.verdicts[first]
		v.RetryAfter, v.Remaining = max(v.RetryAfter, wait), 0
	}
}

// overLimit reports whether a counter refused. Anonymous callers get that answer before they are
// asked to log in: a limit that needs no login holds for them too, though they are not charged.
func (c *call) overLimit() bool {
	for i := range c.verdicts {
		if c.verdicts[i].RetryAfter > 0 && !c.counters[i].Dry {
			return true
		}
	}
	return false
}

// ended reports whether the caller's own context ended while the store was asked.
func (c *call) ended() bool {
	for i := range c.verdicts {
		if c.verdicts[i].Ended != nil {
			return true
		}
	}
	return false
}
