package route

import (
	"slices"
	"sync"
	"sync/atomic"

	"github.com/accesslimit/accesslimit/core/internal/pathmatch"
)

// MaxNoted is the largest number of routes that are noted for a guard.
const MaxNoted = 16

// Notes records which routes a guard was called for, for reports about calls. Without it, the rules
// of all routes would seem to apply to each call. The zero Notes is empty.
type Notes struct {
	calls atomic.Int64
	mu    sync.Mutex
	noted Noted
}

// Noted is what was noted about the calls of a guard.
type Noted struct {
	Routes   []Key
	Unrouted bool // the route of a call was not known, as in front of a router
	Subjects bool // the caller of a Check passed a subject
	Loose    pathmatch.Looseness
	full     bool // there were more routes than are noted
}

// AreNew reports whether fewer than a thousand calls were noted. The first thousand calls are all
// noted. Of the later ones only some are, so that the others cost nothing.
func (n *Notes) AreNew() bool { return n.calls.Load() < 1_000 }

// Note notes a call. subject reports whether a subject was passed with it.
func (n *Notes) Note(of Key, subject bool, loose pathmatch.Looseness) {
	n.calls.Add(1)
	n.mu.Lock()
	defer n.mu.Unlock()
	all := &n.noted
	all.Subjects, all.Loose = all.Subjects || subject, all.Loose|loose
	switch {
	case of == Key{}:
		all.Unrouted = true
	case slices.Contains(all.Routes, of):
	case len(all.Routes) == MaxNoted:
		all.full = true
	default:
		all.Routes = append(all.Routes, of.Clone()) // readers hold the beginning of the list, which does not change
	}
}

// Noted returns what was noted so far.
func (n *Notes) Noted() Noted {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.noted
}

// Any reports whether a call was noted.
func (n *Noted) Any() bool { return n.Unrouted || len(n.Routes) > 0 }

// Breadth returns how many routes the guard was called for. A guard in front of a router
// does not know routes, so it counts as called for all of them.
func (n *Noted) Breadth() int {
	if n.full || n.Unrouted {
		return MaxNoted + 1
	}
	return len(n.Routes)
}

// Includes reports whether the guard was probably called for the route of such a call. If the route
// is not known, every noted route that the path can match counts.
func (n *Noted) Includes(method, pattern, path string) bool {
	method = countedMethod(method)
	return n.full || n.Unrouted || slices.ContainsFunc(n.Routes, func(k Key) bool {
		return k.method == method && (k.pattern == pattern || pattern == "" && pathmatch.CanMatch(k.pattern, path, n.Loose))
	})
}

// Find returns the route of a path, as far as the calls of all guards show it. It is the path itself
// if that is a route. Otherwise it is the only route that the path can match, or "". Routes for all
// paths below them count only if no other route matches, and then the longest does.
func Find(all []Noted, method, path string) (found string) {
	several := false
	for i := range all {
		for _, k := range all[i].Routes {
			better := pathmatch.Precision(k.pattern) - pathmatch.Precision(found)
			switch {
			case k.method != countedMethod(method) || k.pattern == found || !pathmatch.CanMatch(k.pattern, path, all[i].Loose):
			case k.pattern == path:
				return path
			case found == "" || better > 0:
				several, found = false, k.pattern
			case better == 0:
				several = true
			}
		}
	}
	if several {
		return ""
	}
	return found
}
