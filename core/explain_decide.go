package core

import (
	"log/slog"
	"slices"
	"time"

	"github.com/accesslimit/accesslimit/core/adapter"
	"github.com/accesslimit/accesslimit/core/internal/algorithm"
	"github.com/accesslimit/accesslimit/core/internal/engine"
	"github.com/accesslimit/accesslimit/core/internal/operatorlog"
)

// explanation is an Explanation in the making. First come the rules, with what their functions
// return for the call (explain_rule.go), or with all that they can count for a subject
// (explain_inspect.go), then the answers of the store (explain_ask.go), and last what follows
// from both, by the steps of a call (below).
type explanation struct {
	Explanation
	front   *front
	call    *call // asks the answers instead of the store, and charges nothing
	engine  engine.Engine
	answers knownAnswers
	rules   []*explained
	room    int // the number of counters that may still be added
}

// maxExplained is how many rules and counters an Explanation has.
const maxExplained = maxAttached

// newExplanation returns an Explanation of the call that v shows.
func (f *front) newExplanation(v adapter.View, unlisted int) *explanation {
	x := &explanation{front: f, answers: knownAnswers{memory: f.Memory, redis: f.Redis, known: f.Known}, room: maxExplained}
	x.NotListed = unlisted
	x.engine = engine.Engine{Store: &x.answers, KeyHead: f.KeyHead}
	// It is not from the pool, because the functions of rules may panic.
	x.call = &call{View: v}
	x.call.parts, x.call.log = &f.callParts, silentLog()
	x.call.Call = x.engine.NewCall(unobserved{}, 0)
	return x
}

// silentLog returns a log that writes nothing, and keeps no timers.
func silentLog() *operatorlog.Log {
	log := operatorlog.New(slog.New(slog.DiscardHandler))
	log.Close()
	return log
}

// add adds a rule, if there is room for it.
func (x *explanation) add(e *explained) {
	counters := len(e.owns) + len(e.also)
	if e.rule.ban != nil {
		counters++
	}
	if len(x.rules) == maxExplained || counters > x.room {
		x.NotListed++
		return
	}
	x.room -= counters
	x.rules = append(x.rules, e)
}

// decision is what some rules make of a call.
type decision struct {
	reason Reason // "" if it is not known
	by     *explained
	wait   time.Duration
}

// decideBy decides the call by the steps of a middleware that has these rules.
func (x *explanation) decideBy(rules ...*explained) decision {
	x.call.clear()
	for _, e := range rules {
		x.call.applyRule(e.rule, e.named)
	}
	return x.decideApplied(rules)
}

// decideWith decides a call of an Inspect by a rule alone, with a limit in place of its own; nil:
// Unlimited.
func (x *explanation) decideWith(e *explained, own *ruleLimit) decision {
	c := x.call
	c.clear()
	c.applyRule(e.rule, e.named)
	a, in := &c.rules[0], &c.Applied()[0]
	a.known, a.own, in.Subject, in.Cost = true, e.named.limits[0], []byte(e.Subject), e.cost
	if own != nil {
		a.own, in.Own = own, &own.counted
	}
	return x.decideApplied([]*explained{e})
}

// decideApplied decides by the rules that were applied.
func (x *explanation) decideApplied(rules []*explained) (d decision) {
	c := x.call
	c.LookOnly(true)
	r := c.rule("")
	if r.reason == "" {
		if r.at < 0 { // all rules are in DryRun
			r.at = max(0, c.Represents(0))
		}
		r.reason, r.by = reasonOf[c.Outcome(r.at)], c.ruleOf(r.at)
		if wait := c.Verdict(r.at).RetryAfter; wait != algorithm.Forever {
			d.wait = micros(wait)
		}
	}
	if r.reason == Allowed && len(c.uncounted) > 0 {
		r.reason, r.by = DryRunExceeded, c.uncounted[0]
	}
	d.reason = r.reason
	d.by = rules[slices.IndexFunc(rules, func(e *explained) bool { return e.rule == r.by.rule })]
	return d
}

// decide decides by each rule alone and, for a call, by each Guard.
func (x *explanation) decide() (guards []decision) {
	for _, e := range x.rules {
		if e.Applies && !e.undecided {
			d := x.alone(e)
			e.Reason, e.RetryAfter = d.reason, d.wait
		}
	}
	if x.Subject != "" {
		return nil
	}
	var here []*explained // of the Guard
	for i, e := range x.rules {
		if e.Applies && !e.undecided && !e.Elsewhere {
			here = append(here, e)
		}
		if last := i+1 == len(x.rules) || x.rules[i+1].guard != e.guard; last && len(here) > 0 {
			guards, here = append(guards, x.decideBy(here...)), nil
		}
	}
	return guards
}

// alone decides by a rule as if there was no other. It does not look at counts in this process, which
// decide if the store does not answer and the rule says so.
func (x *explanation) alone(e *explained) (d decision) {
	if x.Subject == "" {
		d = x.decideBy(e)
	} else {
		d = x.decideByAny(e)
	}
	if e.failed != nil && e.rule.OnStoreError.mode == countLocally && (d.reason == Allowed || d.reason == StoreFailOpen) {
		return decision{}
	}
	return d
}

// decideByAny decides by each limit that may be in place of the rule's own. The reason is known if it
// is the same for all.
func (x *explanation) decideByAny(e *explained) (d decision) {
	owns := e.owns
	if found := e.stored.found(); found.What != 0 {
		owns = owns[:1]
	}
	for _, own := range owns {
		if own.isAny() && e.failed != nil {
			continue
		}
		by := x.decideWith(e, own.ruleLimit)
		if d.by != nil && by.reason != d.reason || own.isAny() && by.reason == Allowed {
			return decision{}
		}
		d = decision{by.reason, e, max(d.wait, by.wait)}
	}
	return d
}

// conclude fills in the reasons, by the store's answers, and for a call which rule would refuse.
func (x *explanation) conclude() {
	x.answers.now = x.Time.UnixMicro()
	if guards := x.decide(); x.Subject == "" {
		x.concludeCall(guards)
	}
}

// concludeCall finds the rule that would refuse the call: that of the first Guard that refuses it.
func (x *explanation) concludeCall(guards []decision) {
	x.Reason = Allowed
	refused := decision{}
	for _, d := range guards {
		switch _, refuses := outcomes[d.reason]; {
		case refuses && (refused.by == nil || d.by.precedes(refused.by)):
			refused = d
		case d.by.Mode == DryRun:
		case d.reason == SoftExceeded && x.Reason != SoftExceeded, d.reason == StoreFailOpen && x.Reason == Allowed:
			x.Reason, x.Rule = d.reason, d.by.Name
		}
	}
	if refused.by != nil {
		refused.by.Refuses = true
		x.Reason, x.Rule, x.RetryAfter = refused.reason, refused.by.Name, refused.wait
	} else if slices.ContainsFunc(x.rules, (*explained).mayRefuse) {
		x.Reason, x.Rule = "", ""
	}
}

// mayRefuse reports whether it is not known what the rule makes of the call, because of an error.
func (e *explained) mayRefuse() bool {
	return e.Applies && !e.Elsewhere && e.Reason == "" && (e.failed != nil || len(e.Errors) > 0)
}

// precedes reports whether a call passes the Guard of the rule before that of an earlier rule.
// Checks follow the Guards, because they run in handlers. A Guard that was called for more routes is
// probably outside of one that was called for fewer.
func (e *explained) precedes(earlier *explained) bool {
	if e.InHandler != earlier.InHandler {
		return !e.InHandler
	}
	return e.breadth > earlier.breadth
}
