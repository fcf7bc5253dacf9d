package pathmatch

import (
	"regexp"

	"github.com/bmatcuk/doublestar/v4"
)

// parameter is a segment of a route that stands for any value, as routers spell it: :id or {id}.
var parameter = regexp.MustCompile(`/(?::|\{)[^/]*`)

// sameParameter returns a pattern or a route in which all parameters are spelled alike.
func sameParameter(text string) string { return parameter.ReplaceAllString(text, "/:") }

// Misspelled returns the path pattern that would match a route if it spelled the parameters as the
// router does, or "".
func (s *Scope) Misspelled(route string) (pattern string) {
	route = sameParameter(route)
	for _, pattern := range s.paths[0] {
		if named.MatchString(pattern) && doublestar.MatchUnvalidated(sameParameter(pattern), route) {
			return pattern
		}
	}
	return ""
}

// named is a parameter that a pattern names.
var named = regexp.MustCompile(`/:[^/]`)
