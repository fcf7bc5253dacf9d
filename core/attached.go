package core

import (
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"weak"

	"github.com/accesslimit/accesslimit/core/internal/pathmatch"
)

// maxAttached bounds the list of guards, because handlers may make one in each call.
const maxAttached = 4_000

// attachedGuards lists the guards of a limiter, with those of checks, in the order in which they
// were made. Explain and Inspect read it. The pointers are weak, so that a guard which the service
// drops is forgotten.
type attachedGuards struct {
	mu       sync.Mutex
	guards   []weak.Pointer[Guard]
	sweepAt  int // the length at which the guards that were dropped are removed next
	rejected int // how many guards found no room since the list was swept

	unlisted atomic.Int64 // the guards in use that found no room
}

func (a *attachedGuards) add(g *Guard) {
	var callers [16]uintptr
	g.callers = slices.Clone(callers[:runtime.Callers(3, callers[:])])
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.guards) >= a.sweepAt || a.rejected >= maxAttached/4 {
		a.sweep()
	}
	if len(a.guards) < maxAttached {
		a.guards = append(a.guards, weak.Make(g))
		return
	}
	a.rejected++
	a.unlisted.Add(1)
	runtime.AddCleanup(g, func(unlisted *atomic.Int64) { unlisted.Add(-1) }, &a.unlisted)
}

// sweep removes the guards that were dropped. The next sweep is due when the list has doubled, or
// when it is full and has turned away many guards, so that sweeping costs each guard little.
func (a *attachedGuards) sweep() {
	a.guards = slices.DeleteFunc(a.guards, func(g weak.Pointer[Guard]) bool { return g.Value() == nil })
	a.rejected, a.sweepAt = 0, min(max(64, 2*len(a.guards)), max(maxAttached, len(a.guards)+1))
}

// all returns the guards that the service holds, and how many more there are.
func (a *attachedGuards) all() (guards []*Guard, unlisted int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, pointer := range a.guards {
		if g := pointer.Value(); g != nil {
			guards = append(guards, g)
		}
	}
	return guards, int(a.unlisted.Load())
}

// maxNoted bounds the routes that are noted of a guard.
const maxNoted = 16

// guardCalls is what a guard has noted of the calls that it decided. It is not changed once it is
// in use.
type guardCalls struct {
	routes []routeKey
	// full is set when there were more routes than are noted.
	full bool
	// unrouted is set when the route of a call was not known, as in front of a router.
	unrouted bool
	// subjects is set when the caller of a Check passed a subject.
	subjects bool
	loose    pathmatch.Looseness
}

// noteFirst is how many of a guard's first calls are noted. Of the others, only those that inspect
// are noted, so that the rest pays nothing for it.
const noteFirst = 1_000

// note notes a call.
func (g *Guard) note(c *call, subject string) {
	if g.noting.Load() < noteFirst {
		g.noting.Add(1)
	}
	route, loose := routeKey{countedMethod(c.Method()), c.Route()}, loosenessOf(c.View)
	for {
		before := g.calls.Load()
		if before != nil && before.knows(route, subject != "", loose) {
			return
		}
		noted := new(guardCalls)
		if before != nil {
			*noted = *before
		}
		noted.add(route, subject != "", loose)
		if g.calls.CompareAndSwap(before, noted) {
			return
		}
	}
}

// knows reports whether a call like this one is noted.
func (n *guardCalls) knows(route routeKey, subject bool, loose pathmatch.Looseness) bool {
	if subject && !n.subjects || n.loose != n.loose|loose {
		return false
	}
	if route.route == "" || len(route.route) > maxRoute {
		return n.unrouted
	}
	return n.full || slices.Contains(n.routes, route)
}

func (n *guardCalls) add(route routeKey, subject bool, loose pathmatch.Looseness) {
	n.subjects, n.loose = n.subjects || subject, n.loose|loose
	switch {
	case route.route == "" || len(route.route) > maxRoute:
		n.unrouted = true
	case slices.Contains(n.routes, route):
	case len(n.routes) == maxNoted:
		n.full = true
	default:
		n.routes = append(slices.Clip(n.routes), routeKey{strings.Clone(route.method), strings.Clone(route.route)})
	}
}

// names returns the routes that are noted, as unnamed rules are named after them.
func (n *guardCalls) names() (names []string) {
	for _, r := range n.routes {
		names = append(names, routeName(r.method, r.route))
	}
	slices.Sort(names)
	return names
}

// breadth returns for how many routes the guard was called. A guard in front of a router, which knows
// no routes, is called for all of them.
func (n *guardCalls) breadth() int {
	if n.full || n.unrouted {
		return maxNoted + 1
	}
	return len(n.routes)
}

// isElsewhere reports whether no call so far was on the route of this one, or on a route that its
// path can match if its route is not known. Then the guard is probably not attached there. If other
// guards were called and this one was not, it probably is not either.
func (n *guardCalls) isElsewhere(v View, othersCalled bool) bool {
	switch {
	case n.full || n.unrouted:
		return false
	case len(n.routes) == 0:
		return othersCalled
	}
	method, route, path := countedMethod(v.Method()), v.Route(), v.Path()
	return !slices.ContainsFunc(n.routes, func(noted routeKey) bool {
		return noted.method == method && (noted.route == route || route == "" && canMatch(noted.route, path, n.loose))
	})
}

// noted returns what is noted of the guard's calls.
func (g *Guard) noted() guardCalls {
	if noted := g.calls.Load(); noted != nil {
		return *noted
	}
	return guardCalls{}
}

// inForce returns the rules that the next call is decided by, their version, and where each of them
// stands, or was attached.
func (g *Guard) inForce() (rules []*boundRule, version string, place func(rule string) string) {
	attachedAt := ""
	place = func(string) string {
		if attachedAt == "" {
			attachedAt = placeOf(g.callers)
		}
		return attachedAt
	}
	if g.set == nil {
		return g.bound(), "", place
	}
	g.set.mu.Lock()
	defer g.set.mu.Unlock()
	if g.set.place != nil {
		place = g.set.place
	}
	return g.bound(), g.set.stats.Version, place
}
