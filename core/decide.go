package core

// decide decides the call by these rules, and answers it. subject replaces the key of every rule; ""
// keeps each rule's own.
func (c *call) decide(rules []*boundRule, subject string) Answer {
	c.applyRules(rules)
	if len(c.rules) == 0 {
		return Answer{}
	}
	if err := c.Context().Err(); err != nil {
		return c.refuse(c.ruleBy(ContextEnded, &c.rules[0], err))
	}
	r := c.judge(subject)
	if c.settles {
		return c.answerSettleable(r)
	}
	return c.answerTo(r)
}

// answerSettleable is answerTo for a call that has an estimate, which its handler can settle.
func (c *call) answerSettleable(r *ruling) Answer {
	answer := c.answerTo(r)
	if answer.Refusal == nil {
		return c.letSettle(answer)
	}
	return answer
}

// judge decides the call by the rules that apply, and answers nobody. The steps are: who calls, the
// counters, the store. The ruling is nil if the limits decide, by the store's verdicts.
func (c *call) judge(subject string) *ruling {
	if c.refusedForEveryone(subject) {
		return c.ruleByVerdicts()
	}
	needsLogin, stopped, err := c.addRules(subject)
	if stopped != nil {
		return c.ruleUnidentified(stopped, err, subject)
	}
	for !c.consult(needsLogin == nil) {
		if !c.cutToOverride() {
			return c.ruleCostly()
		}
		c.uncounted = c.uncounted[:0]
		_, _, _ = c.addRules(subject) // as before: what its functions returned is kept
	}
	switch {
	case needsLogin != nil && !c.OverLimit() && c.Ended() < 0:
		return c.ruleBy(NotLoggedIn, needsLogin, nil)
	case c.Len() == 0: // the call costs nothing, or has no limit
		return c.ruleBy(Allowed, &c.rules[0], nil)
	}
	return c.ruleByVerdicts()
}

// ruleCostly returns the ruling on a call whose cost never fits.
func (c *call) ruleCostly() *ruling {
	costly := c.Costly()
	r := c.ruleBy(CostTooHigh, &c.rules[costly.By.At], nil)
	r.limit = c.costlyLimit(&costly)
	return r
}

// cutToOverride cuts an estimate that is above an override, which only the store knew, and drops all
// counters. It reports whether there was one, so that the call is to be decided again.
func (c *call) cutToOverride() bool {
	costly := c.Costly()
	a := &c.rules[costly.By.At]
	return a.rule.terms != nil && c.cutTo(&costly, a.rule.terms)
}

// ruleByVerdicts leaves the call to the limits, unless its context has ended. For a counter without a
// verdict, the store policy of its rule has decided (algorithm.Counter.Refuses), as Passed reports.
func (c *call) ruleByVerdicts() *ruling {
	if c.Passed() {
		return nil
	}
	if i := c.Ended(); i >= 0 {
		r := c.ruleBy(ContextEnded, c.ruleOf(i), c.Verdict(i).Ended)
		r.limit = c.limitAt(i)
		return r
	}
	c.ReportBans()
	return nil
}

// consult asks the store for verdicts on the counters, and charges them if charge is set. It reports
// whether the cost fits: if not, nothing was charged.
func (c *call) consult(charge bool) (fits bool) {
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
