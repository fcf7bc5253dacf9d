// Package adapter is for authors of adapters, which attach the rules of core to the routes of a
// framework. It has what an adapter implements and reads, and imports nothing of core. Users of an
// adapter need none of it.
//
// An adapter shows each call as a [View]. [LooseView], [RoutedView], [UnsureRouteView] and
// [HiddenPeerView] have one more method, for some frameworks. [HeaderWriter] is the headers of the
// reply. [PeerOf] and [PeerAddr] read addresses, and [SentOrder] headers of fasthttp.
//
// An adapter passes the View to core.Guard.Check in a middleware, and to core.Check.Allow in its
// function for handlers. Both return a core.Answer, which it carries out:
//
//   - If the Answer has a Refusal, the adapter sends that: first SetHeader, which also sets
//     Content-Type, then Status and Body. In gRPC it sends Code and Message, and the trailers that
//     SetPushback sets. The handler does not run.
//   - Otherwise it runs the handler, with the Context of the Answer if that is not nil.
//   - In a middleware the handler runs in Answer.Run. The function that Run calls returns the status
//     that the handler chose, or 0 if it chose none. In gRPC it returns the code. If the Answer is
//     Final, nothing is left to do after the handler, so it may run without Run and Watch.
//   - On net/http, the handler writes to what Answer.Watch returns. When Run has returned, also by a
//     panic, the adapter calls [Response.Finish].
//
// For callers who ask for their limits, an adapter has a handler. It calls core.Guard.OwnLimits, then
// SetHeader of the result, and sends what Reply returns. Package adaptertest tests all of this. Its
// example is an adapter for a made-up framework.
package adapter

import (
	"context"
	"net/netip"
)

// View is the view of one call that an adapter gives to the core. The core asks only for the parts
// that the rules need, and keeps nothing when the check has returned. The functions of rules see a
// View as a core.Request.
type View interface {
	// Context returns the call's own context. It ends when the caller leaves, if the framework
	// notices.
	Context() context.Context
	// Method returns the HTTP method, or "" for gRPC.
	Method() string
	// Path returns the path in the form that the framework matches routes against, without query, or
	// the full method for gRPC. Do not decode it further, because the core does.
	Path() string
	// Route returns the pattern that the framework matched, without method and host, or "" while it
	// is not known.
	Route() string
	// RemoteAddr returns the address of the connection's peer, or the zero Addr if it has none (a
	// unix socket). See [PeerOf] and [PeerAddr].
	RemoteAddr() netip.Addr
	// Host returns the host that the call was made to, as it was sent (:authority in gRPC), or ""
	// if there is none.
	Host() string
	// Header returns every value of a request header, one for each line, in the order in which they
	// were sent. If the framework's own getter returns a value other than the first, that value
	// comes before them. The name is in canonical form, and never Host.
	Header(name string) []string
	// Query returns the first value of a parameter of the URL's query, or "".
	Query(name string) string
	// Param returns the text that a named wildcard of the route matched, or "".
	Param(name string) string
	// Cookie returns the value of the first cookie of this name, or "". It is the one that the
	// framework's own getter returns, because frameworks differ in what they unquote, decode or skip.
	Cookie(name string) string
	// Value returns the value that an earlier middleware left under this key, in the framework's
	// own store or in the context, or nil.
	Value(key any) any
	// Size returns the length of the body in bytes, or -1 if it is not known.
	Size() int64
	// ResponseHeader returns the headers of the reply. It is never nil.
	ResponseHeader() HeaderWriter
}

// LooseView is a View of a framework that serves other spellings of a path than the registered one.
type LooseView interface {
	View
	// Loose reports whether the router ignores the case of ASCII letters, and whether it ignores
	// trailing slashes.
	Loose() (anyCase, anySlash bool)
}

// RoutedView is a View of a framework that may run a middleware before it knows the route. An
// unnamed rule there is logged as a mistake. Without this interface, an empty Route means that
// there is none.
type RoutedView interface {
	View
	// Routed reports whether the framework has looked for the route.
	Routed() bool
}

// UnsureRouteView is a View of a framework whose callers name the route, and may make up names.
type UnsureRouteView interface {
	View
	// RouteUnsure reports whether the caller may have made up the route. An unnamed rule still counts
	// such a route by itself, but keeps nothing about it. Stats shows all of them under one name.
	RouteUnsure() bool
}

// HiddenPeerView is a View of a framework that may not show the peer of a call. Without this
// interface, a peer without an address is on a unix socket, and may be a trusted proxy.
type HiddenPeerView interface {
	View
	// PeerHidden reports that RemoteAddr is the zero Addr because the peer is not known. No header
	// is believed for the caller's address then.
	PeerHidden() bool
}

// HeaderWriter is the headers of a reply. http.Header and fasthttp's ResponseHeader implement it.
// If it also has Get(name) string or Peek(name) []byte, middlewares around one handler can agree on
// the limit that a header with room for only one describes.
type HeaderWriter interface {
	Set(name, value string)
	Add(name, value string)
}
