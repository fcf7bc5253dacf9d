package core

import (
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"weak"

	"github.com/accesslimit/accesslimit/core/internal/codeplace"
	"github.com/accesslimit/accesslimit/core/internal/pathmatch"
)

// maxAttached bounds the list of guards, because handlers may make one in each call.
const maxAttached = 4_000

// attachedGuards lists the guards of a limiter, including those of checks, in the order in which
// they were made. Explain and Inspect read it. The pointers are weak, so the list does not keep a
// guard that the service has dropped.
type attachedGuards struct {
	mu       sync.Mutex
	guards   []weak.Pointer[Guard]
	sweepAt  int // the length of the list at which dropped guards are removed next
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

// sweep removes dropped guards from the list. The next sweep is due when the list has doubled, or
// when it is full and many guards found no room in it. So sweeping costs little for each guard.
func (a *attachedGuards) sweep() {
	a.guards = slices.DeleteFunc(a.guards, func(g weak.Pointer[Guard]) bool { return g.Value() == nil })
	a.rejected, a.sweepAt = 0, min(max(64, 2*len(a.guards)), max(maxAttached, len(a.guards)+1))
}

// all returns the listed guards that are still in use, and the number of guards in use that are not
// listed.
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

// maxNoted is the largest number of routes that are noted for a guard.
const maxNoted = 16

// guardCalls holds what a guard has noted about the calls that it decided. It does not change once
// the guard refers to it.
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

// noteFirst is how many of the first calls of a guard are noted. Of later calls, only those that
// inspect (call.inspects) are noted, so that the others pay nothing.
const noteFirst = 1_000

// note notes the route of a call, and whether a subject was passed with it.
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

// names returns the noted routes, as they appear in the names of unnamed rules.
func (n *guardCalls) names() (names []string) {
	for _, r := range n.routes {
		names = append(names, routeName(r.method, r.route))
	}
	slices.Sort(names)
	return names
}

// breadth returns the number of routes that the guard was called for. A guard in front of a router
// does not know routes, and counts as called for all of them.
func (n *guardCalls) breadth() int {
	if n.full || n.unrouted {
		return maxNoted + 1
	}
	return len(n.routes)
}

// isElsewhere reports whether the guard is probably not attached to the route of a call, because it
// was called only for other routes, or not at all while other guards were. If the route is not
// known, every noted route that the path can match is taken for it.
func (n *guardCalls) isElsewhere(v View, othersCalled bool) bool {
	switch {
	case n.full || n.unrouted:
		return false
	case len(n.routes) == 0:
		return othersCalled
	}
	method, route, path := countedMethod(v.Method()), v.Route(), v.Path()
	return !slices.ContainsFunc(n.routes, func(noted routeKey) bool {
		return noted.method == method && (noted.route == route || route == "" && pathmatch.CanMatch(noted.route, path, n.loose))
	})
}

// viewOf returns a call as the guard sees it: without its route if the guard is in front of the
// router.
func (n *guardCalls) viewOf(v View) View {
	if n.unrouted && len(n.routes) == 0 {
		return unroutedView{v}
	}
	return v
}

// unroutedView is the View of a call for which no route is known yet.
type unroutedView struct{ View }

func (unroutedView) Route() string       { return "" }
func (unroutedView) Param(string) string { return "" }

// noted returns what the guard has noted about its calls.
func (g *Guard) noted() guardCalls {
	if noted := g.calls.Load(); noted != nil {
		return *noted
	}
	return guardCalls{}
}

// inForce returns the rules that decide the next call, their version, and a function that returns
// where a rule is written or was attached.
func (g *Guard) inForce() (rules []*boundRule, version string, place func(rule string) string) {
	attachedAt := ""
	place = func(string) string {
		if attachedAt == "" {
			attachedAt = codeplace.OfCallers(g.callers)
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
