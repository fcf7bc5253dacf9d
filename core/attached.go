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

// note notes a call. It runs for the first call, and for those that inspect, so that the others pay
// nothing for it.
func (g *Guard) note(c *call, subject string) {
	route := routeKey{countedMethod(c.Method()), c.Route()}
	for {
		before := g.calls.Load()
		var noted guardCalls
		if before != nil {
			noted = *before
		}
		if !noted.add(route, subject != "", loosenessOf(c.View)) && before != nil {
			return
		}
		if g.calls.CompareAndSwap(before, &noted) {
			return
		}
	}
}

// add adds a call, and reports whether that changed anything.
func (n *guardCalls) add(route routeKey, subject bool, loose pathmatch.Looseness) (changed bool) {
	changed = subject && !n.subjects || n.loose != n.loose|loose
	n.subjects, n.loose = n.subjects || subject, n.loose|loose
	switch {
	case route.route == "" || len(route.route) > maxRoute:
		changed, n.unrouted = changed || !n.unrouted, true
	case slices.Contains(n.routes, route):
	case len(n.routes) == maxNoted:
		changed, n.full = changed || !n.full, true
	default:
		route = routeKey{strings.Clone(route.method), strings.Clone(route.route)}
		n.routes, changed = append(slices.Clip(n.routes), route), true
	}
	return changed
}

// names returns the routes that are noted, as unnamed rules are named after them.
func (n *guardCalls) names() (names []string) {
	for _, r := range n.routes {
		names = append(names, routeName(r.method, r.route))
	}
	slices.Sort(names)
	return names
}

// isElsewhere reports whether all calls so far were on other routes.
func (n *guardCalls) isElsewhere(method, route string) bool {
	return route != "" && len(n.routes) > 0 && !n.full && !n.unrouted && !n.has(method, route)
}

func (n *guardCalls) has(method, route string) bool {
	return slices.Contains(n.routes, routeKey{countedMethod(method), route})
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
