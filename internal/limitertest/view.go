package limitertest

import (
	"context"
	"net/http"
	"net/netip"
	"net/url"

	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/core/adapter"
)

// View is a call as an adapter shows it. It implements adapter.View strictly: a header is found under
// its canonical name only.
type View struct {
	Ctx      context.Context
	Verb     string // Method
	URLPath  string // Path
	Pattern  string // Route
	Peer     netip.Addr
	Request  http.Header
	Values   map[any]any
	URLQuery url.Values // Query
	Params   map[string]string
	BodySize int64 // Size
	Response http.Header
}

// NewView returns a call from 192.0.2.1, whose path is also its route.
func NewView(method, route string) *View {
	return &View{
		Ctx: context.Background(), Verb: method, URLPath: route, Pattern: route, Peer: netip.MustParseAddr("192.0.2.1"),
		Request: http.Header{}, Values: map[any]any{}, BodySize: -1, Response: http.Header{},
	}
}

func (v *View) Context() context.Context             { return v.Ctx }
func (v *View) Method() string                       { return v.Verb }
func (v *View) Path() string                         { return v.URLPath }
func (v *View) Route() string                        { return v.Pattern }
func (v *View) RemoteAddr() netip.Addr               { return v.Peer }
func (v *View) Host() string                         { return v.Request.Get("Host") }
func (v *View) Header(name string) []string          { return v.Request[name] }
func (v *View) Query(name string) string             { return v.URLQuery.Get(name) }
func (v *View) Param(name string) string             { return v.Params[name] }
func (v *View) Value(key any) any                    { return v.Values[key] }
func (v *View) Size() int64                          { return v.BodySize }
func (v *View) ResponseHeader() adapter.HeaderWriter { return v.Response }
func (v *View) Cookie(name string) string {
	cookie, err := (&http.Request{Header: v.Request}).Cookie(name)
	if err != nil {
		return ""
	}
	return cookie.Value
}

// From returns the same call by another peer; "" is one without an address, as over a unix socket.
func (v *View) From(peer string) *View {
	v.Peer, _ = netip.ParseAddr(peer)
	return v
}

// In returns the same call with a context.
func (v *View) In(ctx context.Context) *View {
	v.Ctx = ctx
	return v
}

// With returns the same call with one more header line.
func (v *View) With(name, value string) *View {
	v.Request.Add(name, value)
	return v
}

// Asking returns the same call with a query.
func (v *View) Asking(query string) *View {
	v.URLQuery, _ = url.ParseQuery(query)
	return v
}

// Matching returns the same call on a route with a wildcard.
func (v *View) Matching(name, value string) *View {
	v.Params = map[string]string{name: value}
	return v
}

// As returns the same call by a user, for limiters whose Identify is WhoSays.
func (v *View) As(user string) *View {
	v.Values["user"] = user
	return v
}

// WhoSays identifies callers by the user that View.As set.
var WhoSays = core.ContextValue("user")
