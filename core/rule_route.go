package core

import (
	"strings"
	"sync/atomic"

	"github.com/accesslimit/accesslimit/core/internal/cowmap"
)

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
