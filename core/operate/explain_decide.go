package operate

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/core/adapter"
	"github.com/accesslimit/accesslimit/core/internal/limiter"
	"github.com/accesslimit/accesslimit/core/internal/pathmatch"
	"github.com/accesslimit/accesslimit/core/internal/route"
	"github.com/accesslimit/accesslimit/core/internal/survey"
)

// explanation is an Explanation in the making. First it collects the rules, with what their
// functions return for the call, or with every counter that they can have for a subject. Then it
// gets the store's answers. Then it makes the decisions that follow from both, as a call would.
type explanation struct {
	Explanation
	parts *limiter.Parts
	trial limiter.Trial // asks the store, and charges nothing
	store *survey.Survey
	rules []*explained
	room  int // the number of counters that may still be added
	// unread is why the marks could not be read, or nil.
	unread error
}

// maxExplained is how many rules and counters an Explanation has.
const maxExplained = 4_000

// newExplanation begins an explanation. It reads the marks unless that was done before. If they cannot
// be read, it has those that the process knows, and the counters fail as well.
func (o *Operator) newExplanation(ctx context.Context) *explanation {
	unread := o.parts.Marks.Load(ctx)
	x := &explanation{parts: o.parts, store: survey.New(o.parts), room: maxExplained, unread: unread}
	x.trial = o.front.Trial(x.store)
	_, x.NotListed = x.trial.Notes()
	return x
}

// checkSubject returns why nothing can be said about a subject, or nil.
func (o *Operator) checkSubject(subject string) error {
	if err := o.made(); err != nil {
		return err
	}
	return o.front.CheckSubject("", subject)
}

// explain explains the call that v shows.
func (x *explanation) explain(v adapter.View, who limiter.Caller) {
	rules, who := x.trial.OfCall(v, who, pathmatch.Explain)
	x.Method, x.Route, x.Path = strings.Clone(v.Method()), strings.Clone(v.Route()), strings.Clone(v.Path())
	x.User, x.ClientIP = who.User, who.Address
	calls, _ := x.trial.Notes()
	anyCalled := slices.ContainsFunc(calls, func(n route.Noted) bool { return n.Any() })
	for at, of := range rules {
		noted := &calls[of.Guard]
		e := newExplained(at, of, noted)
		// Patterns are for whole routers.
		e.Elsewhere = anyCalled && !of.HasPatterns && !noted.Includes(x.Method, x.Route, x.Path)
		if e.Applies && e.consider(&who, x.Route, noted) {
			e.prepared(x.trial.Prepare(at), &who)
		}
		x.add(e)
	}
}

// add adds a rule, if there is room for it.
func (x *explanation) add(e *explained) {
	counters := len(e.owns) + len(e.also) + 1 // for a pause or strikes
	if len(x.rules) == maxExplained || counters > x.room {
		x.NotListed++
		return
	}
	x.room -= counters
	x.rules = append(x.rules, e)
}

// finish asks the store, and fills in what follows from its answers.
func (x *explanation) finish(ctx context.Context) (Explanation, error) {
	err := x.ask(ctx)
	x.store.SetTime(x.Time.UnixMicro())
	if guards := x.decide(); x.Subject == "" {
		x.conclude(guards)
	}
	for _, e := range x.rules {
		if e.asked {
			e.conclude(ctx, x.parts)
		}
		x.Rules = append(x.Rules, e.ExplainedRule)
	}
	return x.Explanation, err
}

// decision is the decision of some rules about a call.
type decision struct {
	reason core.Reason // "" if it is not known
	by     *explained
	wait   time.Duration
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
		if e.Applies && !e.undecided && !e.Elsewhere && e.Mode != core.DryRun {
			here = append(here, e)
		}
		if last := i+1 == len(x.rules) || x.rules[i+1].of.Guard != e.of.Guard; last && len(here) > 0 {
			guards, here = append(guards, x.decideBy(here...)), nil
		}
	}
	return guards
}

// decideBy decides the call as a middleware with these rules would.
func (x *explanation) decideBy(rules ...*explained) decision {
	indices := make([]int, len(rules))
	for i, e := range rules {
		indices[i] = e.at
	}
	r := x.trial.Decide(indices...)
	return decision{core.Reason(r.Reason), rules[slices.Index(indices, r.By)], micros(r.Wait)}
}

// alone decides by a rule as if there were no other. If the store did not answer, a rule that
// counts locally would decide by the counts of this process. alone does not read them, so the
// decision is then not known.
func (x *explanation) alone(e *explained) (d decision) {
	// The engine knows no pauses, because no call that comes in asks for them.
	if v := e.paused.Answer(); e.Outgoing && v != nil && v.RetryAfter > 0 {
		return decision{core.Banned, e, micros(v.RetryAfter)}
	}
	if x.Subject == "" {
		d = x.decideBy(e)
	} else {
		d = x.decideByAny(e)
	}
	if e.failed != nil && e.of.Counted.LocalShare > 0 && (d.reason == core.Allowed || d.reason == core.StoreFailOpen) {
		return decision{}
	}
	return d
}

// decideByAny decides by each limit that may replace the rule's own. The reason is known if it is
// the same for all of them.
func (x *explanation) decideByAny(e *explained) (d decision) {
	owns := e.owns
	if e.marked && len(owns) > 0 {
		owns = owns[:1]
	}
	for _, own := range owns {
		if own.isAny() && e.failed != nil {
			continue
		}
		r := x.trial.DecideBy(e.at, own.Limit, e.cost)
		reason := core.Reason(r.Reason)
		if d.by != nil && reason != d.reason || own.isAny() && reason == core.Allowed {
			return decision{}
		}
		d = decision{reason, e, max(d.wait, micros(r.Wait))}
	}
	return d
}

// conclude finds the rule that would refuse the call, in the first Guard that refuses it.
func (x *explanation) conclude(guards []decision) {
	x.Reason = core.Allowed
	refused := decision{}
	for _, d := range guards {
		switch {
		case refuses(d.reason) && (refused.by == nil || d.by.precedes(refused.by)):
			refused = d
		case d.reason == core.SoftExceeded && x.Reason != core.SoftExceeded, d.reason == core.StoreFailOpen && x.Reason == core.Allowed:
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

// refuses reports whether calls with this reason are refused.
func refuses(reason core.Reason) bool {
	switch reason {
	case core.Allowed, core.DryRunExceeded, core.SoftExceeded, core.StoreFailOpen, "":
		return false
	default:
		return true
	}
}

// mayRefuse reports whether the rule applies, but an error hides whether it would refuse the call.
func (e *explained) mayRefuse() bool {
	return e.Applies && !e.Elsewhere && e.Reason == "" && (e.failed != nil || len(e.Errors) > 0)
}

// precedes reports whether a call reaches the Guard of e before the Guard of earlier, which was
// attached before it. Checks come after Guards, because they run in handlers. A Guard that was
// called for more routes probably surrounds one that was called for fewer.
func (e *explained) precedes(earlier *explained) bool {
	if e.InHandler != earlier.InHandler {
		return !e.InHandler
	}
	return e.breadth > earlier.breadth
}
