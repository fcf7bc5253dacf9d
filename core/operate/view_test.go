package operate_test

import (
	"context"
	"net/http"
	"net/netip"
	"net/url"

	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/core/adapter"
)

const me = "ip:192.0.2.1" // who calls in newView

// fakeView is a call that has what the rules of these tests read.
type fakeView struct {
	adapter.View
	method, path, route string
	peer                netip.Addr
	user                any
	query               url.Values
	size                int64
	request, response   http.Header
}

// newView returns a call from 192.0.2.1, whose path is also its route.
func newView(method, route string) *fakeView {
	return &fakeView{
		method: method, path: route, route: route, peer: netip.MustParseAddr("192.0.2.1"),
		size: -1, request: http.Header{}, response: http.Header{},
	}
}

// about returns a call that names a subject in a header.
func about(subject string) *fakeView {
	v := newView("GET", "/")
	v.request.Set("Subject", subject)
	return v
}

func (v *fakeView) Context() context.Context             { return background }
func (v *fakeView) Method() string                       { return v.method }
func (v *fakeView) Path() string                         { return v.path }
func (v *fakeView) Route() string                        { return v.route }
func (v *fakeView) RemoteAddr() netip.Addr               { return v.peer }
func (v *fakeView) Header(name string) []string          { return v.request[name] }
func (v *fakeView) Value(any) any                        { return v.user }
func (v *fakeView) Size() int64                          { return v.size }
func (v *fakeView) Query(name string) string             { return v.query.Get(name) }
func (v *fakeView) ResponseHeader() adapter.HeaderWriter { return v.response }

// from returns the same call by another peer.
func (v *fakeView) from(peer string) *fakeView {
	v.peer = netip.MustParseAddr(peer)
	return v
}

// asking returns the same call with a query.
func (v *fakeView) asking(query string) *fakeView {
	v.query, _ = url.ParseQuery(query)
	return v
}

// as returns the same call by a user, for limiters whose Identify is whoSays.
func (v *fakeView) as(user string) *fakeView {
	v.user = user
	return v
}

// whoSays identifies callers by the user that fakeView.as set.
var whoSays = core.ContextValue("user")
