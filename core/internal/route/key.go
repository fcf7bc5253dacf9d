// Package route has the routes of calls: the names under which rules without a Name count them, and
// notes of the routes for which each Guard was called.
package route

import "strings"

// None is the name under which an unnamed rule counts all calls without a known route.
const None = "(no route)"

// maxPattern is the longest route that is counted separately, in bytes.
const maxPattern = 1024

// Key is a method and a route, as rules without a Name count them. The zero Key is that of all
// calls without a route.
type Key struct{ method, pattern string }

// Of returns the key of a call by its method and the pattern that the framework matched.
func Of(method, pattern string) Key {
	if pattern == "" || len(pattern) > maxPattern {
		return Key{}
	}
	return Key{countedMethod(method), pattern}
}

// Name returns the name under which an unnamed rule counts the route.
func (k Key) Name() string {
	switch {
	case k.pattern == "":
		return None
	case k.method == "": // gRPC: the route is all
		return k.pattern
	default:
		return k.method + " " + k.pattern
	}
}

// Name returns the name of a route of any length.
func Name(method, pattern string) string { return Key{countedMethod(method), pattern}.Name() }

// Clone returns the key in memory of its own, because a framework may have lent its texts for one
// call.
func (k Key) Clone() Key { return Key{strings.Clone(k.method), strings.Clone(k.pattern)} }

// countedMethod returns the method under which a call is counted. A HEAD counts as a GET. Methods
// that HTTP does not define count as one: callers could make up as many as they like.
func countedMethod(method string) string {
	switch method {
	case "HEAD":
		return "GET"
	case "", "GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "CONNECT", "TRACE":
		return method
	default:
		return "OTHER"
	}
}
