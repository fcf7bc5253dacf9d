package core

import (
	"strings"
	"sync/atomic"

	"github.com/accesslimit/accesslimit/core/internal/cowmap"
	"github.com/accesslimit/accesslimit/core/internal/operatorlog"
)

// namedFor returns the rule under the name that it counts a call by.
func (b *boundRule) namedFor(v View, log *operatorlog.Log) *namedRule {
	if b.fixed != nil {
		return b.fixed
	}
	return b.namedByRoute(v, log)
}

func (b *boundRule) namedByRoute(v View, log *operatorlog.Log) *namedRule {
	route := v.Route()
	if route == "" && !b.unrouted.Load() {
		b.lookForRoute(v, log)
	}
	return b.routes.of(routeKey{countedMethod(v.Method()), route}, b.meet)
}

// knownAs returns the rule under the name by which it counts a call. Unlike namedFor, it keeps
// nothing of a route that was not called.
func (b *boundRule) knownAs(method, route string) *namedRule {
	key := routeKey{countedMethod(method), route}
	switch p, known := b.routes.known.Get(key); {
	case b.fixed != nil:
		return b.fixed
	case known:
		return p
	case route != "" && len(route) <= maxRoute && !b.routes.full.Load():
		return b.newNamed(strings.Clone(routeName(method, route)))
	}
	if p, known := b.routes.known.Get(routeKey{}); known {
		return p
	}
	return b.newNamed(noRoute)
}

// lookForRoute warns if there is no route because it is not known yet.
func (b *boundRule) lookForRoute(v View, log *operatorlog.Log) {
	if v, ok := v.(RoutedView); ok && !v.Routed() && !b.unrouted.Swap(true) {
		log.RouteUnknown(b.limits[0].phrase())
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

// maxRoutes is the number of routes that an unnamed rule counts separately. It is bounded because
// the callers of a gRPC proxy choose the method's name. Routes beyond it share the counter of calls
// without a route.
const maxRoutes = 2000

// routeRules holds an unnamed rule under the name of each route that was called.
type routeRules struct {
	known cowmap.Map[routeKey, *namedRule]
	full  atomic.Bool // the last place is kept for the calls without a route
}

func (r *routeRules) of(key routeKey, meet func(name string) *namedRule) *namedRule {
	if key.route == "" || len(key.route) > maxRoute {
		key = routeKey{}
	}
	if p, ok := r.known.Get(key); ok {
		return p
	}
	if key.route == "" {
		p, _ := r.known.Add(routeKey{}, meet(noRoute), maxRoutes)
		return p
	}
	if r.full.Load() {
		return r.of(routeKey{}, meet)
	}
	p := meet(strings.Clone(routeName(key.method, key.route)))
	p, kept := r.known.Add(routeKey{strings.Clone(key.method), strings.Clone(key.route)}, p, maxRoutes-1)
	if !kept {
		r.full.Store(true)
		return r.of(routeKey{}, meet)
	}
	return p
}
