package core

// decide decides the call by these rules, and answers it. subject replaces the key of every rule; ""
// keeps each rule's own.
func (c *call) decide(rules []*boundRule, subject string) Answer {
	c.applyRules(rules)
	if len(c.rules) == 0 {
		return Answer{}
	}
	if err := c.Context().Err(); err != nil {
		return c.refuse(ruleBy(ContextEnded, &c.rules[0], err))
	}
	return c.answerTo(c.rule(subject))
}

// rule decides the call by the rules that apply, and answers nobody. The steps are: who calls, the
// counters, the store.
func (c *call) rule(subject string) ruling {
	if c.refusedForEveryone(subject) {
		return c.ruleByVerdicts()
	}
	needsLogin, stopped, err := c.addCaller(subject)
	if stopped != nil {
		return c.ruleUnidentified(stopped, err, subject)
	}
	if !c.ask(needsLogin == nil) {
		return c.ruleCostly()
	}
	switch {
	case needsLogin != nil && !c.OverLimit() && c.Ended() < 0:
		return ruleBy(NotLoggedIn, needsLogin, nil)
	case c.Len() == 0: // the call costs nothing, or has no limit
		return ruleBy(Allowed, &c.rules[0], nil)
	}
	return c.ruleByVerdicts()
}

// ruleCostly returns the ruling on a call whose cost never fits.
func (c *call) ruleCostly() ruling {
	costly := c.Costly()
	return ruling{reason: CostTooHigh, by: &c.rules[costly.By.At], limit: c.costlyLimit(&costly)}
}

// ruleByVerdicts returns the ruling by the store's verdicts. For a counter without a verdict, the
// store policy of its rule decides.
func (c *call) ruleByVerdicts() ruling {
	if !c.Passed() {
		if i := c.Ended(); i >= 0 {
			return ruling{reason: ContextEnded, by: c.ruleOf(i), limit: c.limitAt(i), cause: c.Verdict(i).Ended}
		}
		c.ReportBans()
	}
	return ruling{at: c.Binding()}
}

// ask asks the store for verdicts on the counters, and charges them if charge is set. It reports
// whether the cost fits: if not, nothing was charged.
func (c *call) ask(charge bool) (fits bool) {
	if charge {
		fits = c.Decide(c.Context())
	} else {
		fits = c.Look(c.Context())
	}
	if c.MayBeOverridden() {
		c.useOverrides()
	}
	c.noteUntried()
	return fits
}
