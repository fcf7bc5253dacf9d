package core_test

import (
	"context"
	"net/http"
	"net/netip"
	"net/url"

	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/core/adapter"
)

// fakeView is a call as an adapter shows it. It follows View strictly: a header is found under its
// canonical name only.
type fakeView struct {
	ctx      context.Context
	method   string
	path     string
	route    string
	peer     netip.Addr
	request  http.Header
	values   map[any]any
	query    url.Values
	params   map[string]string
	size     int64
	response http.Header
}

func (v *fakeView) Context() context.Context { return v.ctx }

func (v *fakeView) Method() string { return v.method }

func (v *fakeView) Path() string { return v.path }

func (v *fakeView) Route() string { return v.route }

func (v *fakeView) RemoteAddr() netip.Addr { return v.peer }

func (v *fakeView) Header(name string) []string { return v.request[name] }

func (v *fakeView) Value(key any) any { return v.values[key] }

func (v *fakeView) Size() int64 { return v.size }

func (v *fakeView) ResponseHeader() adapter.HeaderWriter { return v.response }

func (v *fakeView) Host() string { return v.request.Get("Host") }

func (v *fakeView) Query(name string) string { return v.query.Get(name) }

func (v *fakeView) Param(name string) string { return v.params[name] }

func (v *fakeView) Cookie(name string) string {
	cookie, err := (&http.Request{Header: v.request}).Cookie(name)
	if err != nil {
		return ""
	}
	return cookie.Value
}

// from returns the same call by another peer; "" is one without an address, as over a unix socket.
func (v *fakeView) from(peer string) *fakeView {
	v.peer, _ = netip.ParseAddr(peer)
	return v
}

// with returns the same call with one more header line.
func (v *fakeView) with(name, value string) *fakeView {
	v.request.Add(name, value)
	return v
}

// asking returns the same call with a query.
func (v *fakeView) asking(query string) *fakeView {
	v.query, _ = url.ParseQuery(query)
	return v
}

// matching returns the same call on a route with a wildcard.
func (v *fakeView) matching(name, value string) *fakeView {
	v.params = map[string]string{name: value}
	return v
}

// as returns the same call by a user, for limiters whose Identify is whoSays.
func (v *fakeView) as(user string) *fakeView {
	v.values["user"] = user
	return v
}

// newView returns a call from 192.0.2.1, whose path is also its route.
func newView(method, route string) *fakeView {
	return &fakeView{
		ctx: context.Background(), method: method, path: route, route: route, peer: netip.MustParseAddr("192.0.2.1"),
		request: http.Header{}, values: map[any]any{}, size: -1, response: http.Header{},
	}
}

// whoSays identifies callers by the user that fakeView.as set.
var whoSays = core.ContextValue("user")

func by(user string) *fakeView { return newView("GET", "/").as(user) }

const me = "ip:192.0.2.1" // who calls in newView
