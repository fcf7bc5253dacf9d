package pathmatch

import (
	"math"
	"strings"
)

// isSubtree reports whether a route matches all paths below it, like a net/http route that ends in
// a slash. It returns false for /, which matches all paths only in net/http and is a plain route in
// all other frameworks.
func isSubtree(route string) bool { return len(route) > 1 && strings.HasSuffix(route, "/") }

// Precision ranks the routes that a path can match. A route that is not a subtree ranks above all
// subtrees, and a longer subtree above a shorter one.
func Precision(route string) int {
	if isSubtree(route) {
		return len(route)
	}
	return math.MaxInt
}

// CanMatch reports whether a path may belong to a route in any of the frameworks. It treats a
// segment as a wildcard if it has a character that marks wildcards in one of them.
func CanMatch(route, path string, loose Looseness) bool {
	plain := strings.TrimSuffix(route, "{$}") // the end of a path, in net/http
	patterns := strings.Split(strings.TrimRight(plain, "/"), "/")
	segments := strings.Split(strings.TrimRight(path, "/"), "/")
	for i, pattern := range patterns {
		switch {
		case strings.ContainsAny(pattern, "*+?") || strings.Contains(pattern, "..."):
			return true // it may match any number of segments
		case i == len(segments):
			return false
		case strings.ContainsAny(pattern, ":{<("), pattern == segments[i]:
		case loose&AnyCase == 0 || !strings.EqualFold(pattern, segments[i]):
			return false
		}
	}
	return len(patterns) == len(segments) || isSubtree(route)
}
