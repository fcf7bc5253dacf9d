package core

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/accesslimit/accesslimit/core/internal/route"
)

// explained is an ExplainedRule in the making.
type explained struct {
	ExplainedRule
	guard int // its index among the guards
	// breadth is the number of routes that the guard was called for.
	breadth int
	rule    *boundRule // for a call that it applies to, with functions that are traced
	named   *namedRule
	// owns are the limits in place of the rule's own: one for a call, and all possible ones for an
	// Inspect. also are further ones.
	owns, also []sourcedLimit
	cost       int64
	undecided  bool // it is not known what the rule makes of the call
	asked      bool // the store is asked about it
	// stored is what an operator set, or nil.
	stored *Override
	limits []askedLimit // those in force
	banned *question
	failed error // why the store did not answer for one of the limits
}

// sourcedLimit is a limit and where it comes from. It has no limit if it is Unlimited. It is anyLimit
// if LimitFor computes it for each call.
type sourcedLimit struct {
	*ruleLimit
	source string
}

// isAny reports whether LimitFor computes the limit for each call.
func (s sourcedLimit) isAny() bool { return s.ruleLimit == anyLimit }

// askedLimit is a limit in force, and what the store is asked about it.
type askedLimit struct {
	sourcedLimit
	*question
}

// The sources of limits.
const (
	fromRule     = "rule"
	fromAlso     = "also"
	fromPlan     = "plan "
	fromLimitFor = "computed"
	fromOverride = "override"
)

func newExplained(at int, g *attachment, rule *boundRule, version string, place func(rule string) string) *explained {
	e := &explained{guard: at, rule: rule, cost: 1}
	e.Place, e.Version = place(rule.displayName()), version
	e.InHandler, e.Mode = rule.inHandler, rule.Mode
	for _, key := range g.calls.Noted().Routes {
		e.Routes = append(e.Routes, key.Name())
	}
	slices.Sort(e.Routes)
	return e
}

// consider finds out whether the rule applies to a call, and reports whether it can be decided.
// notIdentified is the error of Identify.
func (e *explained) consider(c *call, noted *route.Noted, notIdentified error) (decides bool) {
	rule := e.rule
	e.named = rule.knownAs(c.Method(), c.Route())
	e.Name = e.named.name
	e.Applies, e.Because = rule.scope.Explain(c.Method(), c.Route(), c.Path(), loosenessOf(c.View)|noted.Loose)
	if !e.Applies {
		return false
	}
	e.rule = e.traced(rule, c)
	if rule.Skip != nil && c.skips(e.rule) {
		e.Applies, e.Because = false, "Skip returned true"
		return false
	}
	switch {
	case rule.inHandler && noted.Subjects:
		e.leave("its handler passes subjects of its own, so use Inspect")
	case rule.fixed == nil && e.Elsewhere:
		e.leave("it counts each route by itself, and was never called for this one")
	case rule.fixed == nil && c.Route() == "" && len(noted.Routes) > 0:
		e.leave("it counts each route by itself, and the call's route is not known")
	case rule.NeedLogin && notIdentified != nil:
		e.note("Identify", notIdentified)
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

// prepared notes what the functions of the rule returned in a call that has no other rule.
func (e *explained) prepared(c *call) {
	a, in := &c.rules[0], &c.Applied()[0]
	switch {
	case e.undecided:
		return
	case e.Mode == Soft && (a.err != nil || e.rule.NeedLogin && c.userErr != nil):
		e.but("the call goes on uncounted")
	case e.rule.NeedLogin && e.rule.Mode != Enforce && c.user == "":
		e.but("it refuses nobody, and so does not count callers who are not logged in")
	case in.Free && in.Subject == nil && a.err == nil:
		e.but("it costs nothing")
	}
	if in.Subject == nil {
		return
	}
	e.asked, e.Subject, e.cost = true, string(in.Subject), in.Cost
	own := sourcedLimit{a.own, fromRule}
	if in.Own == nil && !in.Free {
		own.ruleLimit = nil
	}
	switch {
	case a.own == e.named.limits[0] && own.ruleLimit != nil:
	case e.rule.Plan != nil:
		own.source = fromPlan + e.Plan
	default:
		own.source = fromLimitFor
	}
	e.owns = []sourcedLimit{own}
	for _, q := range e.named.limits[1:] {
		e.also = append(e.also, sourcedLimit{q, fromAlso})
	}
}

// traced returns the rule under its name for a call, with functions that run once. What they return
// is noted, and their errors, and a panic is one.
func (e *explained) traced(rule *boundRule, c *call) *boundRule {
	t := &boundRule{
		Rule: rule.Rule, limits: rule.limits, ban: rule.ban, suffix: rule.suffix, fixed: e.named, inHandler: rule.inHandler,
	}
	if rule.Skip != nil {
		skip := once(e, "Skip", func(r Request) (bool, error) { return rule.Skip(r), nil })
		t.Skip = func(r Request) bool {
			skips, _ := skip(r)
			return skips
		}
	}
	if rule.Cost != nil {
		bySize := false
		cost := once(e, "Cost", func(r Request) (n int, _ error) {
			n = e.positive(rule.Cost(r))
			bySize = c.bySize
			return n, nil
		})
		t.Cost = func(r Request) int {
			n, _ := cost(r)
			c.bySize = bySize
			return n
		}
	}
	if rule.Key != nil {
		t.Key = once(e, "Key", rule.Key)
	}
	if rule.Plan != nil {
		t.Plan = once(e, "Plan", func(r Request) (string, error) {
			name, err := rule.Plan(r)
			if err != nil {
				return "", err
			}
			e.Plan = strings.Clone(name)
			_, err = e.named.plan(name)
			return name, err
		})
	}
	if rule.LimitFor != nil {
		a := &appliedRule{rule: rule, named: e.named}
		t.LimitFor = once(e, "LimitFor", func(r Request) (Limit, error) {
			limit, err := rule.LimitFor(r)
			if err == nil {
				_, err = c.computed(a, limit)
			}
			return limit, err
		})
	}
	return t
}

// positive returns a cost as calls count it.
func (e *explained) positive(cost int) int {
	if cost >= 0 {
		return cost
	}
	e.Errors = append(e.Errors, fmt.Sprintf("Cost: returned %d, which counts as 1", cost))
	return 1
}

// once returns a function of a rule that runs once. Later it returns the same again.
func once[T any](e *explained, name string, do func(Request) (T, error)) func(Request) (T, error) {
	var result T
	var err error
	ran := false
	return func(r Request) (T, error) {
		if ran {
			return result, err
		}
		ran = true
		err = tried(func() (failed error) {
			result, failed = do(r)
			return failed
		})
		if err != nil {
			e.note(name, err)
		}
		return result, err
	}
}

// note notes the error of a function. If one panicked without which the call cannot be counted,
// callers get no answer by this rule.
func (e *explained) note(function string, err error) {
	e.Errors = append(e.Errors, function+": "+err.Error())
	needed := function == "Identify" || function == "Key" || function == "Cost"
	e.undecided = e.undecided || needed && errors.Is(err, errPanicked)
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
