package core

import (
	"slices"
	"strings"
	"sync/atomic"

	"github.com/accesslimit/accesslimit/core/internal/pathmatch"
)

// maxNoted is the largest number of routes that are noted for a guard.
const maxNoted = 16

// callNotes are what is noted about the calls of a guard.
type callNotes struct {
	calls  atomic.Pointer[guardCalls] // nil before the first call
	noting atomic.Int32               // how many of the first calls were noted
}

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
func (n *callNotes) note(v View, subject string) {
	if n.noting.Load() < noteFirst {
		n.noting.Add(1)
	}
	route, loose := routeKey{countedMethod(v.Method()), v.Route()}, loosenessOf(v)
	for {
		before := n.calls.Load()
		if before != nil && before.knows(route, subject != "", loose) {
			return
		}
		noted := new(guardCalls)
		if before != nil {
			*noted = *before
		}
		noted.add(route, subject != "", loose)
		if n.calls.CompareAndSwap(before, noted) {
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
func (n *callNotes) noted() guardCalls {
	if noted := n.calls.Load(); noted != nil {
		return *noted
	}
	return guardCalls{}
}
