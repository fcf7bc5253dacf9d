package core

import (
	"context"
	"slices"
	"strings"
)

// explain explains the call that v shows. of says who calls, if that is known.
func (f *front) explain(ctx context.Context, v View, of CallInfo, guards []*attachment, unlisted int) (Explanation, error) {
	x := f.newExplanation(v, unlisted)
	c := x.call
	c.user, c.userKnown = of.User, of.User != "" || of.Anonymous
	failed := identify(c)
	x.describe(c)
	anyCalled := slices.ContainsFunc(guards, func(g *attachment) bool { return g.calls.Load() != nil })
	for at, g := range guards {
		rules, version, place := g.inForce()
		noted := g.noted()
		c.View = noted.viewOf(v)
		for _, rule := range rules {
			e := newExplained(at, g, rule, version, place)
			// Patterns are for whole routers.
			e.breadth = noted.breadth()
			e.Elsewhere = !rule.scope.HasPatterns() && noted.isElsewhere(v, anyCalled)
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
