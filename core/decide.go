package core

import "github.com/accesslimit/accesslimit/core/internal/algorithm"

// decide is the way of a call: which rules apply, who calls, the counters, the store, the answer.
func (c *call) decide(rules []*boundRule, subject string) Answer {
	needLogin := c.apply(rules)
	if len(c.applying) == 0 {
		return Answer{}
	}
	if err := c.Context().Err(); err != nil {
		return c.refuse(ContextEnded, &c.applying[0], err)
	}
	if c.limiter.local != nil && c.refusedForAll(subject) {
		return c.settle()
	}
	nobody := false
	if needLogin != nil {
		user, err := c.User()
		if err != nil {
			return c.unidentified(needLogin, err, subject)
		}
		nobody = user == ""
	}
	switch stopped, reason, err := c.count(nobody, subject); {
	case stopped != nil && reason == IdentifyFailed:
		return c.unidentified(stopped, err, subject)
	case stopped != nil:
		return c.refuse(reason, stopped, err)
	}
	c.ask(!nobody)
	switch {
	case nobody && !c.overLimit() && !c.ended():
		return c.refuse(NotLoggedIn, needLogin, nil)
	case len(c.counters) == 0: // the call costs nothing, or has no limit
		first := &c.applying[0]
		return c.letPass(&Decision{Allowed: true, Reason: Allowed, Rule: first.policy.name, Limit: *first.limit, Source: FromNobody})
	}
	return c.settle()
}

// ask decides over the counters, and charges them if charge is set.
func (c *call) ask(charge bool) {
	if len(c.counters) == 0 {
		return
	}
	if outer := c.limiter.outer.Load(); outer != nil {
		c.compareWith(outer)
	}
	if local := c.limiter.local; local != nil && !charge {
		local.Look(c.Context(), c.counters, c.verdicts)
	} else {
		c.limiter.store.Decide(c.Context(), c.counters, charge, c.verdicts)
	}
	if c.fits() { // nearly always, and then nothing below has anything to do
		c.passed = charge
		return
	}
	c.limiter.dropDoubtfulSlots(c.counters, c.verdicts)
	c.hearBans()
	c.passed = charge && c.passes()
	c.storeFailures()
}

// fits reports whether all counters were asked, and the call fits in each.
func (c *call) fits() bool {
	for i := range c.verdicts {
		if v := &c.verdicts[i]; v.RetryAfter != 0 || v.Ended != nil || v.Failure() != nil {
			return false
		}
	}
	return true
}

// apply finds the rules that are for this call, and the first among them that needs a login.
func (c *call) apply(rules []*boundRule) (needLogin *asked) {
	login := -1
	for _, rule := range rules {
		if !rule.scope.applies(c) || rule.Skip != nil && c.skips(rule) {
			continue
		}
		if rule.NeedLogin && login < 0 && !rule.DryRun {
			login = len(c.applying)
		}
		policy := rule.policyFor(c)
		c.applying = append(c.applying, asked{})
		a := &c.applying[len(c.applying)-1] // filled where it stands: see addCounter
		a.rule, a.policy, a.limit = rule, policy, &rule.limits[0]
	}
	if login < 0 {
		return nil
	}
	return &c.applying[login]
}

// skips calls the rule's Skip.
func (c *call) skips(rule *boundRule) bool {
	c.deciding = rule.policyFor(c)
	defer func() { c.deciding = nil }()
	return rule.Skip(c)
}

// hearBans lets the rule's own limit speak for the ban that stands behind it.
func (c *call) hearBans() {
	for i := range c.asked {
		wait := c.verdicts[i].RetryAfter
		if !c.asked[i].isBan || wait == 0 {
			continue
		}
		first := i
		if watched := c.counters[i].Watched; len(watched) > 0 {
			first = watched[0]
		}
		c.asked[first].banned = true
		v := &c.verdicts[first]
		v.RetryAfter, v.Remaining = max(v.RetryAfter, wait), 0
	}
}

// overLimit says whether a counter refused. A caller who is nobody hears that before being asked to log in: a limit that
// needs no login holds for them too, though they are not charged.
func (c *call) overLimit() bool {
	for i := range c.verdicts {
		if c.verdicts[i].RetryAfter > 0 && !c.counters[i].Dry {
			return true
		}
	}
	return false
}

// ended says whether the caller's own context ended while the store was asked.
func (c *call) ended() bool {
	for i := range c.verdicts {
		if c.verdicts[i].Ended != nil {
			return true
		}
	}
	return false
}

// passes reports whether no counter refuses the call, and its caller is still there.
func (c *call) passes() bool { return !c.ended() && algorithm.Passes(c.counters, c.verdicts) }
