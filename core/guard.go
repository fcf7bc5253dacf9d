package core

import (
	"context"
	"fmt"
	"strings"
)

// Guard is rules on a limiter: what an adapter's middleware asks for every call. It is safe for concurrent use.
type Guard struct {
	limiter *Limiter
	rules   []*boundRule
}

// Answer is what an adapter carries out. The headers that tell the caller the limits are set already.
type Answer struct {
	// Refusal is to be sent in place of the handler; nil: the call goes on.
	Refusal *Refusal
	// Context is to take the place of the call's own for the handler; nil: it stays. See Options.Expose.
	Context context.Context

	unfinished *unfinished // what Run does when the handler has returned
}

// Guard checks rules and puts them together: they are decided as one, all charged or none. The error is a *RuleError; the
// adapters, which call it where a route is made, panic with it.
func (l *Limiter) Guard(rules ...Rule) (*Guard, error) {
	g, err := l.guard(rules)
	if err != nil {
		return nil, err
	}
	for _, rule := range g.rules {
		l.watchRoutes(rule)
	}
	return g, nil
}

func (l *Limiter) guard(rules []Rule) (*Guard, error) {
	if len(rules) == 0 {
		return nil, &RuleError{Field: "rules", Value: "", Why: "a guard needs at least one rule"}
	}
	g := &Guard{limiter: l}
	sameName := make(map[string]int)
	for _, r := range rules {
		rule, err := l.bind(r, sameName)
		if err != nil {
			return nil, err
		}
		g.rules = append(g.rules, rule)
	}
	if wrong := l.names.claim(g.rules); wrong != nil {
		return nil, wrong
	}
	return g, nil
}

// MustGuard is Guard for where a route is made: it panics with the error.
func (l *Limiter) MustGuard(rules ...Rule) *Guard {
	if l == nil {
		panic("core: a rule was attached to a nil *Limiter: check the error of core.New")
	}
	g, err := l.Guard(rules...)
	if err != nil {
		panic(err)
	}
	return g
}

// bind checks a rule, on its own and beside the others of this limiter.
func (l *Limiter) bind(r Rule, sameName map[string]int) (*boundRule, error) {
	if wrong := r.check(); wrong != nil {
		return nil, wrong
	}
	if r.NeedLogin && l.options.Identify == nil {
		return nil, &RuleError{Rule: r.Name, Field: "NeedLogin", Value: true, Why: "needs Options.Identify, to know who is logged in"}
	}
	r = r.clone()
	rule := l.bindAs(r, "")
	name := rule.fixedName()
	sameName[name]++
	switch n := sameName[name]; {
	case n == 2:
		rule = l.bindAs(r, "-"+rule.limits[0].spanName())
	case n > 2:
		rule = l.bindAs(r, fmt.Sprintf("-%s-%d", rule.limits[0].spanName(), n))
	}
	return rule, nil
}

// watchRoutes speaks up when another unnamed rule counts the same callers of the same route in the same counter.
func (l *Limiter) watchRoutes(rule *boundRule) {
	if rule.Key != nil { // whom it counts cannot be compared
		return
	}
	rule.onRoute = func(p *policy) {
		if p.name != noRoute && !l.names.claimRoute(routeClaim{p.quotas[0].keyTail, rule.NeedLogin}, rule) {
			l.complains.sharedRoute(p.name)
		}
	}
}

// Check decides over a call: it tells the caller the limits in the view's headers, and what to do now in the Answer. A call that
// goes on must go on in [Answer.Run]. It returns by Options.Timeout, whatever Redis does, and never panics by itself. When a
// function of the owner's panics in it, the call ends as if its handler had: its slots are free, and Count receives 500 or 13.
func (g *Guard) Check(v View) Answer { return g.check(v, "") }

// CheckRule decides by a rule inside a handler, for a subject that only the handler knows (the account in a form's body); "" is
// the rule's own key. Its name should be set. A wrong rule is logged, and answers 500.
func (l *Limiter) CheckRule(v View, rule Rule, subject string) Answer {
	err := rule.checkInside()
	if err == nil {
		var g *Guard
		if g, err = l.guard([]Rule{rule}); err == nil {
			g.rules[0].inside = true
			return g.check(v, subject)
		}
	}
	l.complains.badRule(rule.Name, err)
	c := l.open(v)
	defer l.close(c)
	l.tallies.ofRule(rule.Name).count(Misconfigured, FromNobody, true, c.stripe)
	answer := c.answer(&Decision{Reason: Misconfigured, Rule: strings.Clone(rule.Name), Source: FromNobody})
	c.decided = true
	return answer
}

func (g *Guard) check(v View, subject string) Answer {
	c := g.limiter.open(v)
	defer g.limiter.close(c)
	answer := c.decide(g.rules, subject)
	c.decided = true
	return answer
}
