package pathmatch

import "github.com/accesslimit/accesslimit/core/adapter"

// Everywhere reports whether every call is in the scope.
func (s *Scope) Everywhere() bool { return !s.HasMethods() && !s.HasPatterns() }

// Applies reports whether a call is in the scope. readings holds the readings of the call's path;
// the first scope with patterns fills it in.
func (s *Scope) Applies(v adapter.View, readings *Readings) bool {
	if s.HasMethods() && !s.MatchesMethod(v.Method()) {
		return false
	}
	if !s.HasPatterns() {
		return true
	}
	if readings.Empty() {
		readings.Read(v.Route(), v.Path(), LoosenessOf(v))
	}
	return s.MatchesPath(readings)
}

// UnsureView is a LooseView that does not know the router.
type UnsureView interface {
	adapter.LooseView
	RouterUnknown()
}

// LoosenessOf returns the spellings that the router of a call does not distinguish.
func LoosenessOf(v adapter.View) (l Looseness) {
	view, ok := v.(adapter.LooseView)
	if !ok {
		return 0
	}
	if _, unsure := v.(UnsureView); unsure {
		l |= Unsure
	}
	anyCase, anySlash := view.Loose()
	if anyCase {
		l |= AnyCase
	}
	if anySlash {
		l |= AnySlash
	}
	return l
}

// maxLooks is the number of calls after which Misspelled stops looking.
const maxLooks = 1000

// Misspelled returns the path pattern that would match a call outside the scope if it named
// parameters as the router does, such as /users/:id for /users/{id}; or "". It returns each pattern
// only once, and looks only at the first thousand calls.
func (s *Scope) Misspelled(v adapter.View) (pattern string) {
	if len(s.named) == 0 || s.looks.Load() >= maxLooks || s.HasMethods() && !s.MatchesMethod(v.Method()) {
		return ""
	}
	s.looks.Add(1)
	if pattern = s.misspelled(v.Route()); pattern != "" {
		s.looks.Store(maxLooks)
	}
	return pattern
}
