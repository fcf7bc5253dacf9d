package core

import (
	"context"
	"slices"
	"strings"

	"github.com/accesslimit/accesslimit/core/adapter"
	"github.com/accesslimit/accesslimit/core/internal/route"
)

// explain explains the call that v shows. of says who calls, if that is known.
func (f *front) explain(ctx context.Context, v adapter.View, of CallInfo, guards []*attachment, unlisted int) (Explanation, error) {
	x := f.newExplanation(v, unlisted)
	c := x.call
	c.user, c.userKnown = of.User, of.User != "" || of.Anonymous
	failed := identify(c)
	x.describe(c)
	calls := callsOf(guards)
	anyCalled := slices.ContainsFunc(calls, func(n route.Noted) bool { return n.Any() })
	for at, g := range guards {
		rules, version, place := g.inForce()
		noted := &calls[at]
		c.View = viewOf(noted, v)
		elsewhere := anyCalled && !noted.Includes(v.Method(), v.Route(), v.Path())
		for _, rule := range rules {
			e := newExplained(at, g, rule, version, place)
			// Patterns are for whole routers.
			e.breadth = noted.Breadth()
			e.Elsewhere = elsewhere && !rule.scope.HasPatterns()
			if e.consider(c, noted, failed) {
				x.decideBy(e)
				e.prepared(c)
			}
			x.add(e)
		}
	}
	if of.MaxCommands > 0 {
		x.askAtMost(of.MaxCommands)
	}
	return x.finish(ctx)
}

// callsOf returns what was noted of the calls of each guard.
func callsOf(guards []*attachment) (calls []route.Noted) {
	for _, g := range guards {
		calls = append(calls, g.calls.Noted())
	}
	return calls
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

// finish asks the store, and fills in what follows from its answers.
func (x *explanation) finish(ctx context.Context) (Explanation, error) {
	err := x.ask(ctx)
	x.conclude()
	for _, e := range x.rules {
		if e.asked {
			x.concludeRule(e)
		}
		x.Rules = append(x.Rules, e.ExplainedRule)
	}
	return x.Explanation, err
}

// identify runs Identify once for all rules. A panic is an error.
func identify(c *call) (err error) {
	if c.parts.options.Identify == nil {
		return nil
	}
	defer func() {
		if err != nil {
			c.user, c.userErr = "", err
		}
	}()
	return tried(func() error {
		_, err := c.User()
		return err
	})
}

// describe copies what identifies the call.
func (x *explanation) describe(c *call) {
	x.Method, x.Route, x.Path = strings.Clone(c.Method()), strings.Clone(c.Route()), strings.Clone(c.Path())
	x.User = strings.Clone(c.user)
	if addr := c.ClientIP(); addr.IsValid() {
		x.ClientIP = addr.String()
	}
}
