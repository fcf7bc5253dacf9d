// Package pathmatch decides to which calls a rule with methods and path patterns applies.
package pathmatch

import (
	"slices"
	"strings"
	"sync/atomic"

	"github.com/bmatcuk/doublestar/v4"
)

// Scope holds the methods and paths that a rule applies to. The zero Scope applies to every call.
type Scope struct {
	methods       []string
	paths, except patterns
	named         []string     // the paths that name parameters
	looks         atomic.Int32 // the calls that Misspelled has looked at
}

// patterns holds path patterns.
type patterns struct {
	texts []string // as they are written
	// forms is indexed by Looseness: for routers that ignore nothing, ASCII case, trailing slashes, or both.
	forms [forms][]pattern
}

// pattern is a path pattern and, if it has braces, each text that their alternatives make of it.
type pattern []string

// NewScope returns the scope of checked methods and patterns. Empty methods or paths apply to every
// call.
func NewScope(methods, paths, except []string) Scope {
	return Scope{methods: methods, paths: newPatterns(paths), except: newPatterns(except), named: withNamedParameters(paths)}
}

func newPatterns(texts []string) patterns {
	p := patterns{texts: slices.Clone(texts)}
	for _, text := range texts {
		all := []string{text}
		if expand(text, 0, &all); len(all) == 2 { // it has no braces
			all = all[:1]
		}
		for loose := range p.forms {
			var folded pattern
			for _, one := range all {
				folded = append(folded, Looseness(loose).fold(one))
			}
			p.forms[loose] = append(p.forms[loose], folded)
		}
	}
	return p
}

// HasMethods reports whether the scope depends on the method.
func (s *Scope) HasMethods() bool { return len(s.methods) > 0 }

// HasPatterns reports whether the scope depends on the path.
func (s *Scope) HasPatterns() bool { return len(s.paths.texts) > 0 || len(s.except.texts) > 0 }

// MatchesMethod reports whether a method is in the scope. A HEAD matches GET, because it runs the
// same handler, and "post" matches POST, because a handler for all methods serves it too. "" is
// gRPC, which has no methods.
func (s *Scope) MatchesMethod(method string) bool {
	return method == "" || slices.ContainsFunc(s.methods, func(m string) bool {
		return strings.EqualFold(m, method) || m == "GET" && strings.EqualFold(method, "HEAD")
	})
}

// MatchesPath reports whether a path is in the scope. A path pattern applies if any reading of the
// path matches it, and an exception only if all readings match. The router uses one of these
// readings; a single canonical path would leave gaps in every framework. If it is not known what the
// router distinguishes, a pattern applies if one of the routers would choose it, and an exception only
// if each would.
func (s *Scope) MatchesPath(r *Readings) bool {
	if len(s.paths.texts) > 0 && !slices.ContainsFunc(r.texts, s.paths.matcher(r.loose)) {
		return false
	}
	return !s.except.matchAll(r.texts, r.loose) || r.loose&Unsure != 0 && !s.except.matchAll(r.exact, 0)
}

// matchAll reports whether each reading matches any of the patterns.
func (p *patterns) matchAll(readings []string, loose Looseness) bool {
	matches := p.matcher(loose)
	return !slices.ContainsFunc(readings, func(text string) bool { return !matches(text) })
}

// matcher returns a function that reports whether a reading matches any of the patterns.
func (p *patterns) matcher(loose Looseness) func(text string) bool {
	form := loose &^ Unsure
	return func(text string) bool {
		return slices.ContainsFunc(p.forms[form], func(of pattern) bool { return of.matches(text) })
	}
}

// matches reports whether the pattern matches a text. Each alternative is tried by itself, because
// doublestar overlooks an empty one beside a star that matches nothing. The pattern is also tried as it
// is written, because in braces doublestar takes ** for any number of segments even behind a letter.
func (p pattern) matches(text string) bool {
	return slices.ContainsFunc(p, func(alternative string) bool { return matches(alternative, text) })
}

// matches reports whether one text of a pattern matches a path. At the end of a path, doublestar
// overlooks a * that matches nothing beside a ** that matches nothing: /v1*/** must match /v1, and
// /v1/**/* must match /v1/.
func matches(pattern, text string) bool {
	switch {
	case doublestar.MatchUnvalidated(pattern, text):
		return true
	case strings.HasSuffix(pattern, "*/**"):
		return matches(strings.TrimSuffix(pattern, "/**"), text)
	case strings.HasSuffix(pattern, "/**/*"):
		return strings.HasSuffix(text, "/") && matches(strings.TrimSuffix(pattern, "**/*"), text)
	}
	return false
}
