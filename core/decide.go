package core

import "github.com/accesslimit/accesslimit/core/internal/algorithm"

// decide decides the call by these rules, and answers it.
func (c *call) decide(rules []*boundRule) Answer {
	c.applyRules(rules)
	if len(c.tried) > 0 {
		return c.decideBesideDryRuns()
	}
	answer := c.decideInForce()
	if c.settles() || len(c.skipped) > 0 {
		return c.letSettle(answer, nil)
	}
	return answer
}

// decideInForce decides and answers the call by the rules that are not in DryRun.
func (c *call) decideInForce() Answer {
	if len(c.rules) == 0 {
		return Answer{}
	}
	if err := c.Context().Err(); err != nil {
		return c.refuse(c.ruleBy(ContextEnded, &c.rules[0], err))
	}
	return c.answerTo(c.judge())
}

// applyRules finds the rules that apply to the call.
func (c *call) applyRules(rules []*boundRule) {
	for _, rule := range rules {
		switch {
		case !rule.scope.Everywhere() && !rule.inScope(c.View, &c.readings, c.log):
		case rule.Mode == DryRun:
			c.try(rule)
		case rule.Skip == nil || !c.skips(rule):
			c.apply(rule, rule.namedFor(c.View, c.log))
		case rule.terms != nil:
			c.skipped = append(c.skipped, rule.namedFor(c.View, c.log).name)
		}
	}
}

// skips reports whether the rule's Skip ignores the call.
func (c *call) skips(rule *boundRule) bool {
	c.deciding = rule.namedFor(c.View, c.log)
	defer func() { c.deciding = nil }()
	return rule.Skip(c)
}

// apply adds a rule that applies to the call, under the name that it counts by.
func (c *call) apply(rule *boundRule, named *namedRule) *appliedRule {
	at := len(c.rules)
	c.learns |= rule.learns
	c.rules = append(c.rules, appliedRule{})
	a := &c.rules[at] // filled in place: a literal would be built elsewhere and copied
	a.rule, a.named, a.own, a.counted.Rule, a.counted.At = rule, named, named.limits[0], &named.counted, at
	return a
}

// judge decides the call by the rules that apply, and answers nobody. The steps are: who calls, the
// counters, the store. The ruling is nil if the limits decide, by the store's verdicts.
func (c *call) judge() *ruling {
	if c.Remembers() && c.refusedForEveryone() {
		return c.ruleByVerdicts()
	}
	needsLogin, stopped, err := c.addRules()
	if stopped != nil {
		return c.ruleUnidentified(stopped, err)
	}
	if !c.consult(c.Context(), needsLogin == nil) {
		return c.ruleCostly()
	}
	switch {
	case needsLogin != nil && !c.OverLimit() && c.Ended() < 0:
		return c.ruleBy(NotLoggedIn, needsLogin, nil)
	case c.CountsNothing(): // the call costs nothing, or has no limit
		return c.ruleBy(Allowed, &c.rules[0], nil)
	}
	return c.ruleByVerdicts()
}

// addRules adds the counters of the rules that apply. It identifies the caller if a rule needs that.
// If nobody is logged in, it leaves out the rules that need a login, and returns the first of them. It
// stops at a rule whose subject cannot be found, and returns that.
func (c *call) addRules() (needsLogin, stopped *appliedRule, err error) {
	if needsLogin = c.needLogin(); needsLogin != nil {
		user, err := c.User()
		if err != nil {
			return nil, needsLogin, err
		}
		c.noteLogin(needsLogin, user)
		if user != "" {
			needsLogin = nil
		}
	}
	for i := range c.rules {
		a := &c.rules[i]
		if needsLogin != nil && a.rule.NeedLogin {
			continue
		}
		c.deciding = a.named
		switch err := c.addRule(a); {
		case err == nil:
		case a.rule.Mode == Soft:
			c.goOnUncounted(a, err)
		default:
			c.deciding = nil
			return needsLogin, a, err
		}
	}
	c.deciding = nil
	return needsLogin, nil, nil
}

// noteLogin warns if many calls needed a login, and none has had one.
func (c *call) noteLogin(by *appliedRule, user string) {
	if missing := c.parts.logins.note(user != ""); missing > 0 {
		c.log.NobodyLoggedIn(by.named.name, missing)
	}
}

// needLogin returns the first rule that applies and needs a login, or nil. A rule that refuses nobody
// asks nobody to log in.
func (c *call) needLogin() *appliedRule {
	for i := range c.rules {
		if rule := c.rules[i].rule; rule.NeedLogin && rule.Mode == Enforce {
			return &c.rules[i]
		}
	}
	return nil
}

// addRule adds the counters of a rule, or returns why its subject cannot be found.
func (c *call) addRule(a *appliedRule) error {
	counts, err := c.askRule(a)
	if counts {
		c.Add(&a.counted)
	}
	return err
}

// askRule runs the functions of a rule. It reports whether the rule counts the call, or returns why
// its subject cannot be found.
func (c *call) askRule(a *appliedRule) (counts bool, err error) {
	if a.rule.NeedLogin && a.rule.Mode != Enforce { // which asks nobody to log in
		user, err := c.User()
		if err != nil && a.rule.Mode == Soft {
			return false, err
		}
		if err == nil {
			c.noteLogin(a, user)
		}
		if user == "" { // as also with an error, which a rule in DryRun does not report
			return false, nil
		}
	}
	if !a.known {
		a.err, a.known = c.prepare(a, c.cost(a)), true
	}
	if a.err != nil {
		return false, a.err
	}
	if a.rule.Note != nil && !a.noted && !c.LooksOnly() {
		c.makeNote(a)
	}
	return true, nil
}

// makeNote makes the note on a call that will be charged, if a limit of the rule keeps notes.
func (c *call) makeNote(a *appliedRule) {
	a.noted = true
	if a.counted.KeepsNotes() {
		a.counted.Note = algorithm.CutNote(a.rule.Note(c))
	}
}

// goOnUncounted logs that the subject of a soft rule could not be determined, unless it is because
// the caller left.
func (c *call) goOnUncounted(a *appliedRule, cause error) {
	if c.Context().Err() == nil {
		c.logUnidentified(a.named.name, "passed the rule, which refuses nobody, uncounted", cause)
	}
}

// ruleCostly returns the ruling on a call whose cost never fits.
func (c *call) ruleCostly() *ruling {
	costly := c.Costly()
	r := c.ruleBy(CostTooHigh, &c.rules[costly.By.At], nil)
	r.limit = c.costlyLimit(&costly)
	return r
}

// ruleByVerdicts leaves the call to the limits, unless its context has ended. For a counter without a
// verdict, the store policy of its rule has decided (algorithm.Counter.Refuses), as Passed reports.
func (c *call) ruleByVerdicts() *ruling {
	if c.Passed() {
		return nil
	}
	return c.ruleUncharged()
}

// ruleUncharged is ruleByVerdicts for a call that may have been refused. It is a function of its own so
// that the compiler inlines ruleByVerdicts.
func (c *call) ruleUncharged() *ruling {
	if i := c.Ended(); i >= 0 {
		r := c.ruleBy(ContextEnded, c.ruleOf(i), c.Verdict(i).Ended)
		r.limit = c.limitAt(i)
		return r
	}
	return nil
}
