package core

import (
	"bytes"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"

	"github.com/accesslimit/accesslimit/core/adapter"
	"github.com/accesslimit/accesslimit/core/internal/algorithm"
	"github.com/accesslimit/accesslimit/core/internal/engine"
	"github.com/accesslimit/accesslimit/core/internal/limiter"
	"github.com/accesslimit/accesslimit/core/internal/marks"
	"github.com/accesslimit/accesslimit/core/internal/operatorlog"
	"github.com/accesslimit/accesslimit/core/internal/pathmatch"
	"github.com/accesslimit/accesslimit/core/internal/route"
	"github.com/accesslimit/accesslimit/core/internal/rulefield"
)

// trial takes the steps of a call for a report. It implements limiter.Trial.
type trial struct {
	engine   engine.Engine
	guards   []*attachment
	handles  func() []*attachment // not made for a call
	unlisted int
	noted    []route.Noted
	call     *call // asks another store
	now      int64 // see decider
	subject  string
	rules    []*triedRule
}

// triedRule is a rule under a name. Its functions run once, in Prepare.
type triedRule struct {
	applied  appliedRule
	view     adapter.View // the call as the rule's guard sees it
	prepared limiter.Prepared
}

func newTried(rule *boundRule, named *namedRule, v adapter.View) *triedRule {
	return &triedRule{view: v, applied: appliedRule{rule: rule, named: named, own: named.limits[0], counted: engine.Applied{Rule: &named.counted}}}
}

// Trial implements limiter.Front.
func (f *front) Trial(store engine.Store) limiter.Trial {
	t := &trial{engine: engine.Engine{Store: store, KeyHead: f.KeyHead}, now: f.callParts.marks.Now(), handles: f.registry.asRules}
	t.guards, t.unlisted = f.registry.attached.All()
	for _, g := range t.guards {
		t.noted = append(t.noted, g.calls.Noted())
	}
	t.call = new(call) // not from the pool, because the functions of rules may panic
	t.call.parts, t.call.log = &f.callParts, silentLog()
	t.call.Call = t.engine.NewCall(engine.Unobserved{}, 0)
	return t
}

// silentLog returns a log that writes nothing, and keeps no timers.
func silentLog() *operatorlog.Log {
	log := operatorlog.New(slog.New(slog.DiscardHandler))
	log.Close()
	return log
}

// Notes implements limiter.Trial.
func (t *trial) Notes() (noted []route.Noted, notListed int) { return t.noted, t.unlisted }

// OfCall implements limiter.Trial.
func (t *trial) OfCall(v adapter.View, who limiter.Caller, explain pathmatch.Explainer) ([]limiter.TrialRule, limiter.Caller) {
	who = t.identify(v, who)
	rules := t.collect(func(guard int, rule *boundRule) []*triedRule {
		if rule.outgoing {
			return nil
		}
		seen := viewOf(&t.noted[guard], v)
		return []*triedRule{newTried(rule, rule.knownAs(seen.Method(), seen.Route()), seen)}
	})
	for i := range rules {
		r, of := t.rules[i], &rules[i]
		of.Applies, of.Because = explain(&r.applied.rule.scope, r.view.Method(), r.view.Route(), r.view.Path(), pathmatch.LoosenessOf(r.view)|t.noted[of.Guard].Loose)
		if !of.Applies {
			continue
		}
		t.call.View = r.view
		r.applied.rule = t.traced(r) // from here on, failures of its functions are noted
		if rule := r.applied.rule; rule.Skip != nil && t.call.skips(rule) {
			of.Applies, of.Because = false, "Skip returned true"
		}
	}
	return rules, who
}

// viewOf returns a call as a guard sees it: without its route if the guard is in front of the router.
func viewOf(calls *route.Noted, v adapter.View) adapter.View {
	if calls.Unrouted && len(calls.Routes) == 0 {
		return unroutedView{v}
	}
	return v
}

// unroutedView is the View of a call for which no route is known yet.
type unroutedView struct{ adapter.View }

func (unroutedView) Route() string       { return "" }
func (unroutedView) Param(string) string { return "" }

// OfSubject implements limiter.Trial.
func (t *trial) OfSubject(v adapter.View, subject string) []limiter.TrialRule {
	t.subject = subject
	t.guards = append(t.guards, t.handles()...)
	t.noted = append(t.noted, make([]route.Noted, len(t.guards)-len(t.noted))...)
	t.call.View, t.call.user, t.call.userKnown = v, subject, true
	return t.collect(func(_ int, rule *boundRule) (all []*triedRule) {
		for _, named := range rule.namedRules() {
			all = append(all, newTried(rule, named, v))
		}
		return all
	})
}

// collect adds what triedUnder returns for each rule in force, and describes it.
func (t *trial) collect(triedUnder func(guard int, rule *boundRule) []*triedRule) (rules []limiter.TrialRule) {
	for at, g := range t.guards {
		bound, version, place := g.inForce()
		for _, rule := range bound {
			for _, r := range triedUnder(at, rule) {
				t.rules = append(t.rules, r)
				of := r.describe()
				of.Guard, of.Version, of.Place = at, version, place(rule.displayName())
				rules = append(rules, of)
			}
		}
	}
	return rules
}

// describe returns what operators are told of the rule, whoever calls.
func (r *triedRule) describe() limiter.TrialRule {
	rule, named := r.applied.rule, r.applied.named
	of := limiter.TrialRule{
		Counted: &named.counted, InHandler: rule.inHandler, Outgoing: rule.outgoing, Handle: rule.handle, ByRoute: rule.fixed == nil, HasPatterns: rule.scope.HasPatterns(),
		Mode: uint8(rule.Mode), NeedsLogin: rule.NeedLogin, Computes: rule.LimitFor != nil, Traits: rulefield.Traits(&rule.Rule), Plans: make(map[string]*engine.Limit, len(named.plans)),
	}
	for plan, limit := range named.plans {
		of.Plans[plan] = nil
		if limit != nil {
			of.Plans[plan] = &limit.counted
		}
	}
	of.StrikeTail, of.Ban = named.strikeTail, named.ban
	for limit := range maps.Values(named.computed.All()) {
		of.Computed = append(of.Computed, &limit.counted)
	}
	return of
}

// identify finds out who calls, once for all rules. A panic of Identify is an error.
func (t *trial) identify(v adapter.View, who limiter.Caller) limiter.Caller {
	c := t.call
	c.View, c.user, c.userKnown = v, who.User, who.Known
	if c.parts.options.Identify != nil {
		failed := limiter.Try("Identify", func() error {
			_, err := c.User()
			return err
		})
		if failed != nil {
			c.user, c.userErr, who.Failed = "", failed.Err, failed
		}
	}
	who.User = strings.Clone(c.user)
	if addr := c.ClientIP(); addr.IsValid() {
		who.Address = addr.String()
	}
	return who
}

// Prepare implements limiter.Trial.
func (t *trial) Prepare(rule int) *limiter.Prepared {
	r := t.rules[rule]
	t.call.View = r.view
	t.Decide(rule)
	r.applied = t.call.rules[0]
	in, p := &r.applied.counted, &r.prepared
	in.Subject = bytes.Clone(in.Subject) // the call uses the memory again
	p.Subject, p.Cost, p.Free, p.Own, p.Err = string(in.Subject), in.Cost, in.Cost == 0, in.Own, r.applied.err
	if p.Free {
		p.Own = in.Rule.Limits[0]
	}
	return p
}

// Marked implements limiter.Trial.
func (t *trial) Marked(rule int, subject string) (found marks.Found, instead []*engine.Limit) {
	named, addr := t.rules[rule].applied.named, addressIn(subject)
	if t.subject == "" {
		addr = t.call.ClientIP()
	}
	found = named.marks.Find([]byte(subject), addr)
	if m := found.Other(); m != nil && m.Kind == marks.Limited {
		if of := named.limitsOf(m); of != nil {
			instead = of.counted
		}
	}
	return found, instead
}

// Decide implements limiter.Trial.
func (t *trial) Decide(rules ...int) limiter.Ruling {
	t.clear()
	for _, i := range rules {
		t.apply(t.rules[i].applied)
	}
	return t.decideApplied(rules)
}

// DecideBy implements limiter.Trial.
func (t *trial) DecideBy(rule int, own *engine.Limit, cost int64) limiter.Ruling {
	t.clear()
	a := t.rules[rule].applied
	a.known = true
	a.counted.Subject, a.counted.Cost, a.counted.Own = []byte(t.subject), cost, own
	t.call.obey(t.call.Context(), &a, addressIn(t.subject))
	t.apply(a)
	return t.decideApplied([]int{rule})
}

// clear empties the call for other rules, which are decided at the same time.
func (t *trial) clear() {
	t.call.clear()
	t.call.now = t.now
}

// apply adds a rule that applies to the call.
func (t *trial) apply(a appliedRule) {
	a.counted.At = len(t.call.rules)
	t.call.rules = append(t.call.rules, a)
}

// decideApplied decides by the rules that were applied.
func (t *trial) decideApplied(rules []int) limiter.Ruling {
	c, wait := t.call, int64(0)
	c.LookOnly(true)
	r := c.judge()
	if r == nil {
		at := max(0, c.Binding())
		r = c.ruleBy(reasonOf[c.Outcome(at)], c.ruleOf(at), nil)
		if wait = c.Verdict(at).RetryAfter; wait == algorithm.Forever {
			wait = 0
		}
	}
	if r.by.named.tried { // it is alone
		r.reason = ifTried(r.reason)
	}
	by := slices.IndexFunc(rules, func(i int) bool { return t.rules[i].applied.rule == r.by.rule })
	return limiter.Ruling{Reason: string(r.reason), By: rules[by], Wait: wait}
}

// traced returns the rule under its name, with functions whose failures are noted. A panic is one, too.
func (t *trial) traced(r *triedRule) *boundRule {
	rule, named, p := r.applied.rule, r.applied.named, &r.prepared
	traced := &boundRule{
		Rule: rule.Rule, limits: rule.limits, ban: rule.ban, suffix: rule.suffix, fixed: named, inHandler: rule.inHandler, terms: rule.terms,
	}
	if rule.Skip != nil {
		skip := noting(p, "Skip", func(r Request) (bool, error) { return rule.Skip(r), nil })
		traced.Skip = func(r Request) bool { return value(skip(r)) }
	}
	if rule.price != nil {
		name := "Cost"
		if rule.terms != nil {
			name = "Estimate"
		}
		cost := noting(p, name, func(r Request) (int, error) { return checkedCost(rule.price(r)) })
		traced.price = func(r Request) int { return value(cost(r)) }
	}
	if rule.Key != nil {
		traced.Key = noting(p, "Key", rule.Key)
	}
	if rule.Plan != nil {
		traced.Plan = noting(p, "Plan", func(r Request) (name string, err error) {
			if name, err = rule.Plan(r); err == nil {
				p.Plan = strings.Clone(name)
				_, err = named.plan(name)
			}
			return name, err
		})
	}
	if rule.LimitFor != nil {
		a := &appliedRule{rule: rule, named: named}
		traced.LimitFor = noting(p, "LimitFor", func(r Request) (limit Limit, err error) {
			if limit, err = rule.LimitFor(r); err == nil {
				_, err = t.call.computed(a, limit)
			}
			return limit, err
		})
	}
	return traced
}

// checkedCost returns what a call costs that a function returned n for. A negative cost counts as 1.
func checkedCost(n int) (int, error) {
	if n < 0 {
		return 1, fmt.Errorf("returned %d, which counts as 1", n)
	}
	return n, nil
}

func value[T any](v T, _ error) T { return v }

// noting returns a function of a rule that notes why it fails.
func noting[T any](p *limiter.Prepared, name string, do func(Request) (T, error)) func(Request) (T, error) {
	return func(r Request) (result T, err error) {
		failed := limiter.Try(name, func() (err error) {
			result, err = do(r)
			return err
		})
		if failed != nil {
			err, p.Failures = failed.Err, append(p.Failures, *failed)
		}
		return result, err
	}
}
