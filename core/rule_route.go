package core

import (
	"sync/atomic"

	"github.com/accesslimit/accesslimit/core/internal/cowmap"
	"github.com/accesslimit/accesslimit/core/internal/route"
)

// maxRoutes is the number of routes that an unnamed rule counts separately. It is bounded because
// the callers of a gRPC proxy choose the method's name. Routes beyond it share the counter of calls
// without a route.
const maxRoutes = 2000

// routeRules holds an unnamed rule under the name of each route that was called.
type routeRules struct {
	known cowmap.Map[route.Key, *namedRule]
	full  atomic.Bool // the last place is kept for the calls without a route
}

func (r *routeRules) of(key route.Key, meet func(name string) *namedRule) *namedRule {
	if p, ok := r.known.Get(key); ok {
		return p
	}
	if key == (route.Key{}) {
		p, _ := r.known.Add(key, meet(route.None), maxRoutes)
		return p
	}
	if r.full.Load() {
		return r.of(route.Key{}, meet)
	}
	key = key.Clone()
	p, kept := r.known.Add(key, meet(key.Name()), maxRoutes-1)
	if !kept {
		r.full.Store(true)
		return r.of(route.Key{}, meet)
	}
	return p
}
