package core

import (
	"log/slog"
	"maps"
	"slices"
	"strings"

	"github.com/accesslimit/accesslimit/core/adapter"
	"github.com/accesslimit/accesslimit/core/internal/algorithm"
	"github.com/accesslimit/accesslimit/core/internal/engine"
	"github.com/accesslimit/accesslimit/core/internal/limiter"
	"github.com/accesslimit/accesslimit/core/internal/operatorlog"
	"github.com/accesslimit/accesslimit/core/internal/pathmatch"
	"github.com/accesslimit/accesslimit/core/internal/route"
	"github.com/accesslimit/accesslimit/core/internal/rulefield"
)

// trial takes the steps of a call for a report. It implements limiter.Trial.
type trial struct {
	engine   engine.Engine
	guards   []*attachment
	unlisted int
	noted    []route.Noted
	call     *call // asks another store
	subject  string
	rules    []*triedRule
}

// triedRule is a rule under a name. For a call that it applies to, its functions run once.
type triedRule struct {
	rule     *boundRule
	named    *namedRule
	view     adapter.View // the call as the rule's guard sees it
	prepared limiter.Prepared
}

// Trial implements limiter.Front.
func (f *front) Trial(store engine.Store) limiter.Trial {
	t := &trial{engine: engine.Engine{Store: store, KeyHead: f.KeyHead}}
	t.guards, t.unlisted = f.registry.attached.All()
	for _, g := range t.guards {
		t.noted = append(t.noted, g.calls.Noted())
	}
	t.call = new(call) // not from the pool, because the functions of rules may panic
	t.call.parts, t.call.log = &f.callParts, silentLog()
	t.call.Call = t.engine.NewCall(unobserved{}, 0)
	return t
}

// silentLog returns a log that writes nothing, and keeps no timers.
func silentLog() *operatorlog.Log {
	log := operatorlog.New(slog.New(slog.DiscardHandler))
	log.Close()
	return log
}

// Calls implements limiter.Trial.
func (t *trial) Calls() (noted []route.Noted, notListed int) { return t.noted, t.unlisted }

// OfCall implements limiter.Trial.
func (t *trial) OfCall(v adapter.View, who limiter.Caller, explain pathmatch.Explainer) ([]limiter.TrialRule, limiter.Caller) {
	who = t.identify(v, who)
	rules := t.collect(func(guard int, rule *boundRule) []*triedRule {
		r := &triedRule{rule: rule, view: viewOf(&t.noted[guard], v)}
		r.named = rule.knownAs(r.view.Method(), r.view.Route())
		return []*triedRule{r}
	})
	for i := range rules {
		r, of := t.rules[i], &rules[i]
		of.Applies, of.Because = explain(&r.rule.scope, r.view.Method(), r.view.Route(), r.view.Path(), loosenessOf(r.view)|t.noted[of.Guard].Loose)
		if !of.Applies {
			continue
		}
		t.call.View, r.rule = r.view, t.traced(r)
		if r.rule.Skip != nil && t.call.skips(r.rule) {
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
	t.call.View, t.call.user, t.call.userKnown = v, subject, true
	return t.collect(func(_ int, rule *boundRule) (all []*triedRule) {
		for _, named := range rule.namedRules() {
			all = append(all, &triedRule{rule: rule, named: named, view: v})
		}
		return all
	})
}

// collect adds what under returns of each rule in force, and describes it.
func (t *trial) collect(under func(guard int, rule *boundRule) []*triedRule) (rules []limiter.TrialRule) {
	for at, g := range t.guards {
		bound, version, place := g.inForce()
		for _, rule := range bound {
			for _, r := range under(at, rule) {
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
	of := limiter.TrialRule{
		Counted: &r.named.counted, InHandler: r.rule.inHandler, ByRoute: r.rule.fixed == nil, HasPatterns: r.rule.scope.HasPatterns(),
		NeedsLogin: r.rule.NeedLogin, Computes: r.rule.LimitFor != nil, Traits: rulefield.Traits(&r.rule.Rule), Plans: make(map[string]*engine.Limit, len(r.named.plans)),
	}
	for plan, limit := range r.named.plans {
		if of.Plans[plan] = nil; limit != nil {
			of.Plans[plan] = &limit.counted
		}
	}
	for limit := range maps.Values(r.named.computed.All()) {
		of.Computed = append(of.Computed, &limit.counted)
	}
	return of
}

// identify finds out who calls, once for all rules. A panic of Identify is an error.
func (t *trial) identify(v adapter.View, who limiter.Caller) limiter.Caller {
	c := t.call
	c.View, c.user, c.userKnown = v, who.User, who.Known
	if c.parts.options.Identify != nil {
		failed := tried("Identify", func() error {
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
	a, in, p := &t.call.rules[0], &t.call.Applied()[0], &r.prepared
	p.Subject, p.Cost, p.Free, p.Own, p.Err = string(in.Subject), in.Cost, in.Free, in.Own, a.err
	if in.Free {
		p.Own = in.Rule.Limits[0]
	}
	return p
}

// Decide implements limiter.Trial.
func (t *trial) Decide(rules ...int) limiter.Ruling {
	t.call.clear()
	for _, i := range rules {
		t.call.applyRule(t.rules[i].rule, t.rules[i].named)
	}
	return t.decideApplied(rules)
}

// DecideBy implements limiter.Trial.
func (t *trial) DecideBy(rule int, own *engine.Limit, cost int64) limiter.Ruling {
	c, r := t.call, t.rules[rule]
	c.clear()
	c.applyRule(r.rule, r.named)
	a, in := &c.rules[0], &c.Applied()[0]
	a.known = true
	in.Subject, in.Cost, in.Own = []byte(t.subject), cost, own
	return t.decideApplied([]int{rule})
}

// decideApplied decides by the rules that were applied.
func (t *trial) decideApplied(rules []int) limiter.Ruling {
	c, wait := t.call, int64(0)
	c.LookOnly(true)
	r := c.rule("")
	if r == nil {
		at := c.Binding()
		if at < 0 { // all rules are in DryRun
			at = max(0, c.Represents(0))
		}
		r = c.ruleBy(reasonOf[c.Outcome(at)], c.ruleOf(at), nil)
		if wait = c.Verdict(at).RetryAfter; wait == algorithm.Forever {
			wait = 0
		}
	}
	if r.reason == Allowed && len(c.uncounted) > 0 {
		r.reason, r.by = DryRunExceeded, c.uncounted[0]
	}
	by := slices.IndexFunc(rules, func(i int) bool { return t.rules[i].rule == r.by.rule })
	return limiter.Ruling{Reason: string(r.reason), By: rules[by], Wait: wait}
}

// unobserved is the engine's observer of calls that are only explained.
type unobserved struct{}

func (unobserved) Decided(int, engine.Decided)            {}
func (unobserved) Charged(int, []float64)                 {}
func (unobserved) Banned(int)                             {}
func (unobserved) StoreFailed(*engine.Applied, error)     {}
func (unobserved) OverrideIgnored(*engine.Applied, error) {}
