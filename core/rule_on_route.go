package core

import (
	"github.com/accesslimit/accesslimit/core/adapter"
	"github.com/accesslimit/accesslimit/core/internal/operatorlog"
	"github.com/accesslimit/accesslimit/core/internal/route"
)

// namedFor returns the rule under the name that it counts a call by.
func (b *boundRule) namedFor(v adapter.View, log *operatorlog.Log) *namedRule {
	if b.fixed != nil {
		return b.fixed
	}
	return b.namedByRoute(v, log)
}

func (b *boundRule) namedByRoute(v adapter.View, log *operatorlog.Log) *namedRule {
	pattern := v.Route()
	if pattern == "" && !b.unrouted.Load() {
		b.lookForRoute(v, log)
	}
	return b.routes.Of(route.Of(v.Method(), pattern), b.meet)
}

// knownAs returns the rule under the name by which it counts a call. Unlike namedFor, it keeps
// nothing of a route that was not called.
func (b *boundRule) knownAs(method, pattern string) *namedRule {
	if b.fixed != nil {
		return b.fixed
	}
	return b.routes.Peek(route.Of(method, pattern), b.newNamed)
}

// lookForRoute warns if there is no route because it is not known yet.
func (b *boundRule) lookForRoute(v adapter.View, log *operatorlog.Log) {
	if v, ok := v.(adapter.RoutedView); ok && !v.Routed() && !b.unrouted.Swap(true) {
		log.RouteUnknown(b.limits[0].terms().Phrase())
	}
}

// meet makes the namedRule of a route that an unnamed rule is called for first.
func (b *boundRule) meet(name string) *namedRule {
	p := b.newNamed(name)
	p.tally = b.tallies.OfRule(name)
	if b.onRoute != nil {
		b.onRoute(p)
	}
	return p
}

// namedRules returns the rule under each name that it has counted by.
func (b *boundRule) namedRules() []*namedRule {
	if b.fixed != nil {
		return []*namedRule{b.fixed}
	}
	return b.routes.All()
}
