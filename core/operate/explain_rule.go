package operate

import (
	"context"
	"math"
	"slices"
	"time"

	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/core/internal/algorithm"
	"github.com/accesslimit/accesslimit/core/internal/engine"
	"github.com/accesslimit/accesslimit/core/internal/failure"
	"github.com/accesslimit/accesslimit/core/internal/limiter"
	"github.com/accesslimit/accesslimit/core/internal/marks"
	"github.com/accesslimit/accesslimit/core/internal/rediskey"
	"github.com/accesslimit/accesslimit/core/internal/route"
	"github.com/accesslimit/accesslimit/core/internal/survey"
)

// explained is an ExplainedRule in the making.
type explained struct {
	ExplainedRule
	at      int // its index in the Trial
	of      limiter.TrialRule
	breadth int // the number of routes that its guard was called for
	// owns are the limits that replace the rule's own: one for a call, and all possible ones for an
	// Inspect. also are the further limits.
	owns, also []sourcedLimit
	cost       int64
	undecided  bool         // it is not known how the rule decides the call
	asked      bool         // the store is asked about it
	marked     bool         // the subject has a mark, with these limits in place of the rule's
	limits     []askedLimit // those in force
	paused     *survey.Question
	failed     error // why the store did not answer for one of the limits
}

// sourcedLimit is a limit and its source. Its Limit is nil for Unlimited, and anyLimit if LimitFor
// computes it for each call.
type sourcedLimit struct {
	*engine.Limit
	source string
}

// anyLimit stands for the limits of LimitFor that are not known.
var anyLimit = &engine.Limit{Compiled: survey.Any, Max: survey.Any.Max, KeyTail: "any"}

// isAny reports whether LimitFor computes the limit for each call.
func (s sourcedLimit) isAny() bool { return s.Limit == anyLimit }

// askedLimit is a limit in force, and what the store is asked about it.
type askedLimit struct {
	sourcedLimit
	*survey.Question
}

// The sources of limits.
const (
	fromRule     = "rule"
	fromAlso     = "also"
	fromPlan     = "plan "
	fromLimitFor = "computed"
	fromOverride = "override"
)

func newExplained(at int, of limiter.TrialRule, calls *route.Noted) *explained {
	e := &explained{at: at, of: of, cost: 1, breadth: calls.Breadth()}
	e.Name, e.Place, e.Version, e.InHandler = of.Counted.Name, of.Place, of.Version, of.InHandler
	e.Mode, e.Traits, e.Outgoing, e.Handle = core.Mode(of.Mode), of.Traits, of.Outgoing, of.Handle
	e.Applies, e.Because = of.Applies, of.Because
	for _, key := range calls.Routes {
		e.Routes = append(e.Routes, key.Name())
	}
	slices.Sort(e.Routes)
	return e
}

// consider reports whether the rule, which applies, can be decided for the call. If not, it notes why.
func (e *explained) consider(caller *limiter.Caller, route string, calls *route.Noted) (decides bool) {
	switch {
	case e.InHandler && calls.Subjects:
		e.leave("its handler passes subjects of its own, so use Inspect")
	case e.of.ByRoute && e.Elsewhere:
		e.leave("it counts each route by itself, and was never called for this one")
	case e.of.ByRoute && route == "" && len(calls.Routes) > 0:
		e.leave("it counts each route by itself, and the call's route is not known")
	case e.of.NeedsLogin && caller.Failed != nil:
		e.note(caller.Failed)
	}
	return !e.undecided
}

// leave leaves the rule undecided, and appends a clause to Because.
func (e *explained) leave(why string) {
	e.undecided = true
	e.but(why)
}

// but appends a clause to Because.
func (e *explained) but(why string) { e.Because += "; " + why }

// note notes the error of a function. If the function panicked, and a call cannot be counted
// without it, the rule is undecided.
func (e *explained) note(f *limiter.Failure) {
	e.Errors = append(e.Errors, f.Function+": "+f.Err.Error())
	needed := f.Function == "Identify" || f.Function == "Key" || f.Function == "Cost" || f.Function == "Estimate"
	e.undecided = e.undecided || needed && f.Panicked
}

// prepared notes what the functions of the rule returned.
func (e *explained) prepared(p *limiter.Prepared, caller *limiter.Caller) {
	for i := range p.Failures {
		e.note(&p.Failures[i])
	}
	switch e.Plan = p.Plan; {
	case e.undecided:
		return
	case e.Mode == core.Soft && (p.Err != nil || e.of.NeedsLogin && caller.Failed != nil):
		e.but("the call goes on uncounted")
	case e.of.NeedsLogin && e.Mode != core.Enforce && caller.User == "":
		e.but("it refuses nobody, and so does not count callers who are not logged in")
	case p.Free && p.Subject == "" && p.Err == nil:
		e.but("it costs nothing")
	}
	if p.Subject == "" {
		return
	}
	e.asked, e.Subject, e.cost = true, p.Subject, p.Cost
	own := sourcedLimit{p.Own, fromRule}
	switch {
	case p.Own == e.of.Counted.Limits[0]:
	case e.of.Computes:
		own.source = fromLimitFor
	default:
		own.source = fromPlan + e.Plan
	}
	e.owns = []sourcedLimit{own}
	e.addAlso()
}

// addAlso adds the further limits of the rule.
func (e *explained) addAlso() {
	for _, limit := range e.of.Counted.Limits[1:] {
		e.also = append(e.also, sourcedLimit{limit, fromAlso})
	}
}

// key returns a key of the rule's subject.
func (e *explained) key(head, tail string) string {
	return string(rediskey.Append(nil, head, e.Subject, tail))
}

// findMarks finds the marks of the subject. Those that refuse it leave its limits as they are.
func (e *explained) findMarks(trial limiter.Trial) {
	found, instead := trial.Marked(e.at, e.Subject)
	e.marked = !found.Empty()
	if m := found.Ban(); m != nil {
		e.BannedUntil, e.BannedAs = timeOf(m.Until), e.ofAddress(m)
	}
	m := found.Other()
	if m == nil {
		return
	}
	switch {
	case m.Kind == marks.Unlimited:
		e.owns, e.also = []sourcedLimit{{nil, fromOverride}}, nil
	case len(instead) > 0:
		e.owns, e.also = nil, nil
		for _, limit := range instead {
			e.owns = append(e.owns, sourcedLimit{limit, fromOverride})
		}
	case m.Kind == marks.Limited:
		e.marked = found.Ban() != nil
		e.Errors = append(e.Errors, "the override is ignored: its limits do not suit the rule or the handle")
	}
	o := overrideOf(m)
	e.Override, e.OverriddenAs = &o, e.ofAddress(m)
}

// ofAddress returns the subject of a mark if it is not that of the rule, but an address or a network.
func (e *explained) ofAddress(m *marks.Mark) string {
	if _, ok := marks.Network(m.Subject); ok && m.Subject != e.Subject {
		return m.Subject
	}
	return ""
}

// findLimits finds the limits in force, from the rule, the plan and the mark. They determine the cost
// of a call of unknown size.
func (e *explained) findLimits() {
	also := e.also
	if len(e.owns) == 1 && e.owns[0].Limit == nil { // Unlimited lifts all limits of the rule
		also = nil
	}
	for _, limit := range slices.Concat(e.owns, also) {
		e.limits = append(e.limits, askedLimit{sourcedLimit: limit})
	}
	if e.cost == algorithm.LargestCost {
		e.cost = e.largestCost()
	}
}

// largestCost returns the largest cost that fits into the limits in force.
func (e *explained) largestCost() int64 {
	if own := e.limits[0]; own.Limit != nil {
		return e.of.Counted.LargestCost(own.Limit)
	}
	return algorithm.MaxPermits
}

// ask adds the questions about the limits in force and the pause.
func (e *explained) ask(s *survey.Survey, head string) {
	if e.Outgoing {
		e.paused = s.About(e.key(head, rediskey.PauseTail(e.of.Counted.Name)), &algorithm.PauseLimit, 0)
	}
	costly := e.cost > e.largestCost() // then it is not charged
	for i := range e.limits {
		switch a := &e.limits[i]; {
		case a.Limit == nil || a.isAny():
		case costly:
			a.Question = s.About(e.key(head, a.KeyTail), a.Compiled, 0)
		default:
			a.Question = s.About(e.key(head, a.KeyTail), a.Compiled, a.CostOf(e.cost))
		}
	}
}

// findFailure finds why the store did not answer about the rule. A key that does not hold a counter
// is only an error of the rule.
func (e *explained) findFailure() error {
	for i := range e.limits {
		if e.failed == nil {
			e.failed = e.limits[i].Err()
		}
	}
	if e.failed == nil {
		e.failed = e.paused.Err()
	}
	if failure.ClassOf(e.failed) == failure.Foreign {
		e.Errors = append(e.Errors, "Redis: "+e.failed.Error())
		return nil
	}
	return e.failed
}

// conclude fills in the limits, and what is remembered of bans or pauses.
func (e *explained) conclude(ctx context.Context, parts *limiter.Parts) {
	for i := range e.limits {
		e.Limits = append(e.Limits, e.limits[i].explain())
		if of := &e.Limits[i]; of.Source == fromOverride {
			of.Until = e.Override.Until
		}
	}
	e.Cost = permits(e.cost)
	switch v := e.paused.Answer(); {
	case v != nil:
		if v.RetryAfter > 0 {
			e.BannedUntil = time.UnixMicro(v.At + v.RetryAfter).UTC()
		}
		refusals, err := parts.Pauses.Refusals(ctx, e.Name, e.Subject)
		if e.Bans = int(refusals); err != nil && e.failed == nil {
			e.failed = err
		}
	case e.of.Ban != nil:
		r, err := parts.Marks.Record(ctx, []byte(e.key(parts.KeyHead, e.of.StrikeTail)), e.of.Ban)
		if e.Bans, e.Strikes = int(r.Bans), int(r.Strikes); err != nil && e.failed == nil {
			e.failed = err
		}
	}
}

// explain returns a limit with the store's answer.
func (a *askedLimit) explain() ExplainedLimit {
	out := ExplainedLimit{Source: a.source}
	switch {
	case a.Limit == nil:
		out.Limit = core.Unlimited
	case !a.isAny():
		out.Limit = limitOf(a.Limit)
	}
	if v := a.Answer(); v != nil {
		out.Known, out.Remaining, out.Debt = true, permits(max(0, v.Remaining)), permits(max(0, -v.Remaining))
		out.ResetAfter, out.RetryAfter = micros(v.ResetAfter), micros(v.RetryAfter)
		out.Used = max(0, permits(a.Compiled.Max-v.Remaining))
	}
	return out
}

// permits returns a number of permits, or the largest int if that is smaller.
func permits(n int64) int { return int(min(n, math.MaxInt)) }
