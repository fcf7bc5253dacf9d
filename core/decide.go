package core

// decide decides the call by these rules. The steps are: which rules apply, who calls, the
// counters, the store, the answer. subject replaces the key of every rule; "" keeps each rule's
// own.
func (c *call) decide(rules []*boundRule, subject string) Answer {
	needLogin := c.applyRules(rules)
	if len(c.rules) == 0 {
		return Answer{}
	}
	if err := c.Context().Err(); err != nil {
		return c.refuseBy(ContextEnded, &c.rules[0], err)
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
	if stopped, err := c.addRules(anonymous, subject); stopped != nil {
		return c.refuseUnidentified(stopped, err, subject)
	}
	if !c.ask(!anonymous) {
		return c.refuseCostly()
	}
	switch {
	case anonymous && !c.OverLimit() && c.Ended() == nil:
		return c.refuseBy(NotLoggedIn, needLogin, nil)
	case c.Len() == 0: // the call costs nothing, or has no limit
		return c.passUncounted()
	}
	return c.answerVerdicts()
}

// passUncounted answers a call that has no counter.
func (c *call) passUncounted() Answer {
	first := c.rules[0].named
	return c.letPass(&Decision{Allowed: true, Reason: Allowed, Rule: first.name, Limit: first.limits[0].limit, Source: FromNobody})
}

// refuseCostly refuses a call whose cost never fits.
func (c *call) refuseCostly() Answer {
	costly, at := c.Costly()
	a := &c.rules[costly.At]
	limit := &a.rule.limits[0]
	if at >= 0 {
		limit = c.limitAt(at)
	}
	c.bySize = a.bySize
	return c.refuse(CostTooHigh, a.named, limit, nil)
}

// ask asks the store for verdicts on the counters, and charges them if charge is set. It reports
// whether the cost fits: if not, nothing was charged.
func (c *call) ask(charge bool) (fits bool) {
	if outer := c.parts.outerCalls.Current(); outer != nil {
		if at := chargedOutside(outer, c.View, c.Counters()); at >= 0 {
			c.parts.log.AttachedTwice(c.Limit(at).Rule.Name, c.Route())
		}
	}
	if charge {
		fits = c.Decide(c.Context())
	} else {
		fits = c.Look(c.Context())
	}
	if c.MayBeOverridden() {
		c.useOverrides()
	}
	c.reportUntried()
	return fits
}
