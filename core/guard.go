package core

import (
	"context"
	"maps"

	"github.com/accesslimit/accesslimit/core/adapter"
	"github.com/accesslimit/accesslimit/core/internal/pathmatch"
	"github.com/accesslimit/accesslimit/core/internal/route"
)

// Guard is a set of rules that are decided together. A middleware calls [Guard.Check] for every
// call. Make one with [Limiter.Guard] when the service starts, or with [RuleSet.Guard], for rules
// that are replaced while it runs. It is safe for concurrent use.
type Guard struct {
	front *front
	attachment
}

// Guard returns a Guard of these rules. They are decided together, all charged or none. The error
// is a *[RuleError], or joins one for each mistake. A name stands for one limit on a Limiter: if
// another Guard or Check has a rule of the same name with another limit, that is an error too.
func (l *Limiter) Guard(rules ...Rule) (*Guard, error) {
	return l.guard(rules, false)
}

func (l *Limiter) guard(rules []Rule, inHandler bool) (*Guard, error) {
	f := l.front()
	switch {
	case f == nil:
		return nil, errNoLimiter
	case len(rules) == 0:
		return nil, &RuleError{Field: "rules", Value: rules, Why: "must be at least one"}
	}
	if wrong := f.registry.checkAll(rules, inHandler); wrong != nil {
		return nil, joinRuleErrors(wrong)
	}
	g := &Guard{front: f}
	g.rules = f.registry.bind(rules, inHandler)
	if err := f.registry.attach(&g.attachment); err != nil {
		return nil, err
	}
	return g, nil
}

// MustGuard is like Guard but panics if a rule is wrong.
func (l *Limiter) MustGuard(rules ...Rule) *Guard { return orPanic(l.Guard(rules...)) }

// Check returns every mistake of the rule: those that no Limiter accepts, and unless l is nil, those
// that l does not accept because of its Options. If the rule's own limit is wrong, nothing
// that depends on it is checked. Whether other rules of this Name have another limit is known only
// when the rule is attached.
//
// Each mistake has a Code, so that a service can say in its own words what is wrong.
func (r *Rule) Check(l *Limiter) []*RuleError {
	f := l.front()
	if f == nil {
		return r.check()
	}
	return f.registry.check(r)
}

// Check decides whether a call may go on. It sets the headers that tell the caller the limits, and
// returns an Answer for the adapter to carry out. The handler must run inside [Answer.Run], unless
// the answer is [Answer.Final]. Check returns by Options.Timeout, whatever Redis does, and never
// panics by itself. If a function of the service panics in it, the call ends as if its handler had
// panicked: its slots are free, and Count receives 500 or 13.
func (g *Guard) Check(v adapter.View) Answer { return g.check(v, "") }

// Rules returns copies of the guard's rules.
func (g *Guard) Rules() []Rule {
	if !g.made() {
		panic(errZeroGuard)
	}
	bound := g.bound()
	rules := make([]Rule, len(bound))
	for i, rule := range bound {
		rules[i] = rule.Rule.clone()
	}
	return rules
}

// made reports whether a Limiter made the guard.
func (g *Guard) made() bool { return g != nil && g.front != nil }

func (g *Guard) check(v adapter.View, subject string) Answer {
	if !g.made() {
		panic(errZeroGuard)
	}
	c := g.front.calls.open(v)
	defer g.front.calls.close(c)
	rules := g.bound()
	if c.inspects || g.calls.AreNew() {
		g.calls.Note(route.Of(v.Method(), v.Route()), subject != "", pathmatch.LoosenessOf(v))
		c.looksFurtherOut = !rules[0].inHandler
	}
	if rules[0].inHandler {
		c.check, c.subject = &g.attachment, subject
	}
	answer := c.decide(rules)
	if c.repeated != nil {
		g.front.registry.warnOfRepetition(c.repeated.rule, c.repeated.named.name)
	}
	c.decided = true
	return answer
}

// Check decides by rules inside a handler, where only the handler knows the subject: the account in
// the body of a login, the forum of a post. Make one with [Limiter.Check] when the service starts,
// and pass it to the Allow function of an adapter. It is safe for concurrent use.
type Check struct {
	guard *Guard
}

// Check returns a [Check] of these rules. They are decided together, all charged or none. The error
// is that of [Limiter.Guard]. Rules with Count or [Concurrency] are refused too, because a Check
// does not learn how the call ends.
func (l *Limiter) Check(rules ...Rule) (*Check, error) {
	g, err := l.guard(rules, true)
	if err != nil {
		return nil, err
	}
	return &Check{g}, nil
}

// MustCheck is like Check but panics if a rule is wrong.
func (l *Limiter) MustCheck(rules ...Rule) *Check { return orPanic(l.Check(rules...)) }

// Allow decides whether the call that v shows may go on. The subject replaces the key of every rule
// of the check; "" keeps each rule's own. The promises of [Guard.Check] hold here too.
func (c *Check) Allow(v adapter.View, subject string) Answer { return c.madeGuard().check(v, subject) }

// WithEstimates returns a context for one Allow of an adapter, in which rules of the check cost these
// estimates in place of what their Estimate returns, by their names. If the call may go on, [Settle]
// settles them in this context:
//
//	ctx, err := costs.WithEstimates(r.Context(), core.Costs{"requests": 1, "input": 1200, "output": 4000})
//	if err != nil || !nethttplimit.Allow(w, r.WithContext(ctx), costs, "tenant:acme") {
//		return
//	}
//	...
//	err = core.Settle(ctx, core.Costs{"input": input, "output": output})
//
// They can be settled for as long as the service keeps the context, and until another Allow of the
// check with it. The error is a *[RuleError] if the check has no such rule, or an estimate is negative;
// the context is ctx then.
func (c *Check) WithEstimates(ctx context.Context, estimates Costs) (context.Context, error) {
	g := c.madeGuard()
	if !g.made() {
		return ctx, errZeroGuard
	}
	for name, n := range estimates {
		switch {
		case !g.settles(name):
			return ctx, wrongArgument(name, "estimates", n, "are for rules of the check with an Estimate")
		case n < 0:
			return ctx, wrongArgument(name, "estimates", n, "must not be negative")
		}
	}
	return &settleable{Context: ctx, outer: settleableIn(ctx), parts: &g.front.callParts, check: &g.attachment, given: maps.Clone(estimates)}, nil
}

// Rules returns copies of the check's rules.
func (c *Check) Rules() []Rule { return c.madeGuard().Rules() }

// madeGuard returns the guard of the rules, or nil if no Limiter made the check.
func (c *Check) madeGuard() *Guard {
	if c == nil {
		return nil
	}
	return c.guard
}
