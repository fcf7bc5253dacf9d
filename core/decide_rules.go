package core

import (
	"github.com/accesslimit/accesslimit/core/internal/algorithm"
	"github.com/accesslimit/accesslimit/core/internal/engine"
)

// applyRules finds the rules that apply to the call.
func (c *call) applyRules(rules []*boundRule) {
	for _, rule := range rules {
		if !rule.inScope(c.View, &c.readings, c.log) || rule.Skip != nil && c.skips(rule) {
			continue
		}
		c.apply(rule, rule.namedFor(c.View, c.log))
	}
}

// needLogin returns the first rule that applies and needs a login, or nil. A lenient rule asks nobody
// to log in.
func (c *call) needLogin() *appliedRule {
	for i := range c.rules {
		if rule := c.rules[i].rule; rule.NeedLogin && rule.Mode == Enforce {
			return &c.rules[i]
		}
	}
	return nil
}

// apply adds a rule that applies to the call, under the name that it counts by.
func (c *call) apply(rule *boundRule, named *namedRule) *appliedRule {
	at := len(c.rules)
	c.settles = c.settles || rule.terms != nil
	c.rules = append(c.rules, appliedRule{rule: rule, named: named, counted: engine.Applied{Rule: &named.counted, At: at}})
	return &c.rules[at]
}

// skips reports whether the rule's Skip ignores the call.
func (c *call) skips(rule *boundRule) bool {
	c.deciding = rule.namedFor(c.View, c.log)
	defer func() { c.deciding = nil }()
	return rule.Skip(c)
}

// addRules adds the counters of the rules that apply. It identifies the caller if a rule needs that.
// If nobody is logged in, it leaves out the rules that need a login, and returns the first of them. It
// stops at a rule whose subject cannot be found, and returns that.
func (c *call) addRules(subject string) (needsLogin, stopped *appliedRule, err error) {
	if needsLogin = c.needLogin(); needsLogin != nil {
		switch user, err := c.User(); {
		case err != nil:
			return nil, needsLogin, err
		case user != "":
			needsLogin = nil
		}
	}
	for i := range c.rules {
		a := &c.rules[i]
		if needsLogin != nil && a.rule.NeedLogin {
			continue
		}
		c.deciding = a.named
		switch err := c.addRule(a, subject); {
		case err == nil:
		case a.rule.Mode == DryRun:
			c.uncounted = append(c.uncounted, a)
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

// noteUntried notes the rules in DryRun whose cost never fits.
func (c *call) noteUntried() {
	for _, untried := range c.Untried() {
		c.uncounted = append(c.uncounted, &c.rules[untried.At])
	}
}

// goOnUncounted logs that the subject of a soft rule could not be determined, unless it is because
// the caller left.
func (c *call) goOnUncounted(a *appliedRule, cause error) {
	if c.Context().Err() == nil {
		c.logUnidentified(a.named.name, "passed the rule, which refuses nobody, uncounted", cause)
	}
}

// addRule adds the counters of a rule, or returns why its subject cannot be found.
func (c *call) addRule(a *appliedRule, subject string) error {
	if a.rule.NeedLogin && a.rule.Mode != Enforce { // a lenient rule asks nobody to log in
		switch user, err := c.User(); {
		case err != nil && a.rule.Mode == Soft:
			return err
		case user == "": // as also with an error, which a rule in DryRun does not report
			return nil
		}
	}
	if !a.known {
		a.err, a.known = c.prepare(a, c.cost(a), subject), true
	}
	if a.err != nil {
		return a.err
	}
	if in := &a.counted; a.rule.Note != nil && in.KeepsNotes() && !c.LooksOnly() {
		in.Note = algorithm.CutNote(a.rule.Note(c))
	}
	c.Add(&a.counted)
	return nil
}

// prepare calls the functions of a rule, except Cost and Note, for what the engine has to know of a
// call that takes so many permits.
func (c *call) prepare(a *appliedRule, cost int64, subject string) (err error) {
	in := &a.counted
	in.Cost, in.Free, a.own = cost, cost == 0, a.named.limits[0]
	if in.Free && a.rule.ban == nil && !a.rule.Overrides {
		return nil
	}
	if in.Subject, err = c.findSubject(a, subject); err != nil {
		return err
	}
	if !in.Free {
		own := a.own
		if a.rule.Plan != nil || a.rule.LimitFor != nil {
			own = c.planned(a)
		}
		if own != nil {
			a.own, in.Own = own, &own.counted
		}
		if terms := a.rule.terms; terms != nil && in.Own != nil {
			in.Cost = terms.cut(in.Cost, in.Rule.LargestCost(in.Own))
		}
	}
	in.Personal = a.perUser()
	return nil
}

// findSubject returns the rule's subject, in memory that the call keeps.
func (c *call) findSubject(a *appliedRule, subject string) ([]byte, error) {
	from := len(c.subjects)
	switch {
	case subject != "":
		c.subjects = append(c.subjects, subject...)
	case a.rule.Key != nil:
		key, err := a.rule.Key(c)
		if err != nil {
			return nil, err
		}
		c.subjects = append(c.subjects, key...)
	case a.rule.NeedLogin:
		c.subjects = append(append(c.subjects, "user:"...), c.user...)
	}
	if len(c.subjects) == from {
		c.subjects = c.parts.clientIPs.AppendSubject(c.subjects, c.addressToCount())
	}
	return c.subjects[from:len(c.subjects):len(c.subjects)], nil
}

// cost returns what the call costs by the rule.
func (c *call) cost(a *appliedRule) int64 {
	if a.rule.Cost == nil {
		return 1
	}
	c.unit = 0
	cost := a.rule.Cost(c)
	a.unit = c.unit
	if a.rule.terms != nil && a.rule.inHandler {
		cost = estimateFor(c.Context(), c.check, a.named.name, cost)
	}
	if cost < 0 {
		c.log.NegativeCost(a.named.name, cost)
		return 1
	}
	return c.permits(cost)
}
