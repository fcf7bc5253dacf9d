package pathmatch

import "regexp"

// parameter is a segment of a route that stands for any value, as routers spell it: :id or {id}.
var parameter = regexp.MustCompile(`/(?::|\{)[^/]*`)

// sameParameter returns a pattern or a route in which all parameters are spelled alike.
func sameParameter(text string) string { return parameter.ReplaceAllString(text, "/:") }

// namedParameter is a parameter that a pattern names.
var namedParameter = regexp.MustCompile(`/:[^/]`)

// withNamedParameters returns the patterns that name parameters.
func withNamedParameters(patterns []string) (named []string) {
	for _, pattern := range patterns {
		if namedParameter.MatchString(pattern) {
			named = append(named, pattern)
		}
	}
	return named
}

// misspelled returns the path pattern that would match a route if it named the parameters as the
// router does, or "". It ignores patterns that do match the route, because then only an exception
// keeps the rule from applying.
func (s *Scope) misspelled(route string) (pattern string) {
	alike := sameParameter(route)
	for _, pattern := range s.named {
		if matches(sameParameter(pattern), alike) && !matches(pattern, route) {
			return pattern
		}
	}
	return ""
}
