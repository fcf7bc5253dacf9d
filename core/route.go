package core

// noRoute is the name under which an unnamed rule counts all calls without a known route.
const noRoute = "(no route)"

// maxRoute is the longest route that is counted separately, in bytes.
const maxRoute = 1024

// routeKey is a route under a method, as rules without a name count it.
type routeKey struct{ method, route string }

// routeName returns the name under which an unnamed rule counts a route.
func routeName(method, route string) string {
	method = countedMethod(method)
	switch {
	case route == "":
		return noRoute
	case method == "": // gRPC: the route is all
		return route
	default:
		return method + " " + route
	}
}

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
