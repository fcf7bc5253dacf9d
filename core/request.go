package core

import (
	"context"
	"net/netip"
)

// Request is the narrow view of one call that key functions, costs, identifiers and replies read. It is valid during the
// call only: who keeps it, or a string it gave, may see another caller's.
type Request interface {
	// Context is the call's own.
	Context() context.Context
	// Method is the HTTP method; "" for gRPC.
	Method() string
	// Path is the path as the framework routes it; the full method for gRPC.
	Path() string
	// Route is the pattern that the framework matched, "" while that is not known.
	Route() string
	// RemoteAddr is the peer, the zero Addr for a unix socket. The client is ClientIP: between them may be proxies.
	RemoteAddr() netip.Addr
	// ClientIP is the caller's address as Options.ClientIP finds it, the zero Addr when there is none.
	// To count by it use [ByIP] or [IPSubject]. Counting by its String would count each of the many
	// IPv6 addresses of one caller by itself.
	ClientIP() netip.Addr
	// Host is the host that the call was made to, in lower case, without port and trailing dot; "" if
	// there is none. Callers choose it.
	Host() string
	// Header returns every value of a request header, in order. Host is one in every framework, in
	// lower case, with its port.
	Header(name string) []string
	// Query returns the first value of a parameter of the URL's query, or "".
	Query(name string) string
	// Param returns what a named wildcard of the route matched, or "". A middleware of a whole router
	// may run before that is known.
	Param(name string) string
	// Cookie is the value of the first cookie of this name, "" when there is none.
	Cookie(name string) string
	// Value is what an earlier middleware left under this key, or nil.
	Value(key any) any
	// Size is the length of the body in bytes, -1 when it is not known.
	Size() int64
	// User is whom Options.Identify found: "" for nobody; an error when it could not be asked. It is asked once a call.
	User() (string, error)
	// Rule is the name of the rule that is being decided, "" outside of one.
	Rule() string
}
