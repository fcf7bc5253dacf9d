package core

import (
	"errors"
	"fmt"
	"strings"

	"github.com/accesslimit/accesslimit/core/internal/algorithm"
)

// explanation is an Explanation in the making. First come the results of the rules' functions for
// the call (explain_call.go), or all that the rules can count for a subject (explain_inspect.go),
// then the answers of the store (explain_ask.go), and last what follows from both
// (explain_conclude.go).
type explanation struct {
	Explanation
	front *front
	rules []*explained
	room  int // the number of counters that may still be added
}

// explained is an ExplainedRule in the making.
type explained struct {
	ExplainedRule
	guard int // its index among the guards
	// breadth is the number of routes that the guard was called for.
	breadth int
	rule    *boundRule
	named   *namedRule
	// owns are the limits in place of the rule's own: one for a call, and all possible ones for an
	// Inspect. also are further ones.
	owns, also []sourcedLimit
	cost       int64 // algorithm.LargestCost stands for the largest that fits
	// userUnknown reports whether Identify failed for the rule, which has NeedLogin.
	userUnknown bool
	asked       bool // the store is asked about it
	// stored is what an operator set, or nil.
	stored *Override
	ban    string       // the state of a ban in Redis
	limits []askedLimit // those in force
	banned *question
	// banWait is how long a ban holds, either in force already or begun by the refusal of the call.
	banWait int64
	bound   algorithm.Verdict // of the limit that binds the call most
	failed  error             // why the store did not answer for one of the limits
}

// sourcedLimit is a limit and where it comes from. If it has no limit, it is Unlimited, or one that
// LimitFor computes for each call.
type sourcedLimit struct {
	*ruleLimit
	source string
}

// The sources of limits.
const (
	fromRule     = "rule"
	fromAlso     = "also"
	fromPlan     = "plan "
	fromLimitFor = "computed"
	fromOverride = "override"
)

// maxExplained is how many rules and counters an Explanation has.
const maxExplained = maxAttached

func (f *front) newExplanation(unlisted int) *explanation {
	x := &explanation{front: f, room: maxExplained}
	x.NotListed = unlisted
	return x
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

func newExplained(at int, g *attachment, rule *boundRule, version string, place func(rule string) string) *explained {
	e := &explained{guard: at, rule: rule, cost: 1}
	noted := g.noted()
	e.Place, e.Version = place(rule.displayName()), version
	e.Routes, e.InHandler, e.DryRun, e.Soft = noted.names(), rule.inHandler, rule.DryRun, rule.Soft
	return e
}

// errPanicked is in the error of a function that panicked.
var errPanicked = errors.New("panicked")

// tried calls a function of the service. If it panics, that is its error.
func tried(do func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("%w: %v", errPanicked, p)
		}
	}()
	return do()
}

// try is tried for a function of the rule. It notes its error.
func (e *explained) try(c *call, name string, do func() error) error {
	c.deciding = e.named
	defer func() { c.deciding = nil }()
	err := tried(do)
	if err != nil {
		e.Errors = append(e.Errors, name+": "+err.Error())
	}
	return err
}

// consider finds out what the rule says of a call, without the store. notIdentified is the error of
// Identify.
func (e *explained) consider(c *call, noted guardCalls, notIdentified error) {
	rule := e.rule
	e.named = rule.knownAs(c.Method(), c.Route())
	e.Name = e.named.name
	e.Applies, e.Because = rule.scope.Explain(c.Method(), c.Route(), c.Path(), loosenessOf(c.View)|noted.loose)
	if !e.Applies || e.skips(c) {
		return
	}
	switch {
	case rule.inHandler && noted.subjects:
		e.but("its handler passes subjects of its own, so use Inspect")
	case rule.fixed == nil && e.Elsewhere:
		e.but("it counts each route by itself, and was never called for this one")
	case rule.fixed == nil && c.Route() == "" && len(noted.routes) > 0:
		e.but("it counts each route by itself, and the call's route is not known")
	case rule.NeedLogin && notIdentified != nil:
		e.notIdentified(notIdentified)
	case rule.NeedLogin && c.user == "" && rule.lenient:
		e.Reason = Allowed
		e.but("it refuses nobody, and so does not count callers who are not logged in")
	case rule.NeedLogin && c.user == "":
		e.Reason = NotLoggedIn
	default:
		e.count(c)
	}
}

// but appends a clause to Because.
func (e *explained) but(why string) { e.Because += "; " + why }

// notIdentified notes the error of Identify for a rule with NeedLogin.
func (e *explained) notIdentified(err error) {
	e.userUnknown = true
	e.Errors = append(e.Errors, "Identify: "+err.Error())
	if e.unidentified(err); e.Reason == DryRunExceeded { // it does not count callers who are not logged in
		e.Reason = Allowed
	}
}

// unidentified sets the outcome for a call that the rule cannot count, because a function failed.
// If it panicked, callers would get no answer by this rule.
func (e *explained) unidentified(err error) {
	switch {
	case errors.Is(err, errPanicked):
	case e.Soft:
		e.Reason = Allowed
		e.but("the call goes on uncounted")
	default:
		e.Reason = e.wouldBe(IdentifyFailed)
	}
}

// wouldBe returns the reason to refuse a call as the rule gives it.
func (e *explained) wouldBe(reason Reason) Reason {
	switch {
	case e.DryRun:
		return DryRunExceeded
	case e.Soft:
		return SoftExceeded
	default:
		return reason
	}
}

// skips reports whether the rule's Skip ignores the call.
func (e *explained) skips(c *call) (skips bool) {
	if e.rule.Skip == nil {
		return false
	}
	_ = e.try(c, "Skip", func() error {
		skips = e.rule.Skip(c)
		return nil
	})
	if skips {
		e.Applies, e.Because = false, "Skip returned true"
	}
	return skips
}

// count finds the subject, the limits and the cost.
func (e *explained) count(c *call) {
	rule := e.rule
	if rule.Cost != nil && e.try(c, "Cost", func() error { return e.findCost(c) }) != nil {
		return
	}
	if e.cost == 0 && rule.ban == nil && !rule.Overrides {
		e.Reason = Allowed
		e.but("it costs nothing")
		return
	}
	a := &appliedRule{rule: rule, named: e.named}
	err := e.try(c, "Key", func() error {
		subject, err := c.findSubject(a, "")
		e.Subject = string(subject)
		return err
	})
	if err != nil {
		e.unidentified(err)
		return
	}
	e.owns = []sourcedLimit{e.planned(c, a)}
	for _, q := range e.named.limits[1:] {
		e.also = append(e.also, sourcedLimit{q, fromAlso})
	}
	e.asked = true
}

func (e *explained) findCost(c *call) error {
	c.bySize = false
	cost := e.rule.Cost(c)
	if cost < 0 {
		e.Errors = append(e.Errors, fmt.Sprintf("Cost: returned %d, which counts as 1", cost))
		cost = 1
	}
	e.cost = c.permits(cost)
	return nil
}

// planned returns the limit in place of the rule's own, for a call.
func (e *explained) planned(c *call, a *appliedRule) sourcedLimit {
	own := sourcedLimit{e.named.limits[0], fromRule}
	var q *ruleLimit
	switch {
	case e.rule.Plan != nil:
		err := e.try(c, "Plan", func() (err error) {
			name, err := e.rule.Plan(c)
			if err != nil {
				return err
			}
			e.Plan = strings.Clone(name)
			q, err = e.named.plan(name)
			return err
		})
		if err != nil || e.Plan == "" {
			return own
		}
		return sourcedLimit{q, fromPlan + e.Plan}
	case e.rule.LimitFor != nil:
		err := e.try(c, "LimitFor", func() (err error) {
			q, err = c.plan(a)
			return err
		})
		if err != nil || q == own.ruleLimit {
			return own
		}
		return sourcedLimit{q, fromLimitFor}
	}
	return own
}
