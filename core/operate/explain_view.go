package operate

import (
	"context"
	"net/http"
	"net/netip"
	"net/url"
	"strconv"
	"strings"

	"github.com/accesslimit/accesslimit/core/adapter"
	"github.com/accesslimit/accesslimit/core/internal/route"
)

// callView is a Call as a View.
type callView struct {
	ctx    context.Context
	call   Call
	sent   string // the path as it was sent, without the query
	path   string // the path as frameworks route it
	query  url.Values
	header http.Header // with names in canonical form
}

func newCallView(ctx context.Context, call Call, calls []route.Noted) *callView {
	sent, query, _ := strings.Cut(call.Path, "?")
	v := &callView{ctx: ctx, call: call, sent: sent, path: route.Path(call.Method, sent), header: make(http.Header, len(call.Header))}
	v.query, _ = url.ParseQuery(query) // malformed parts are left out, as in net/http
	for name, lines := range call.Header {
		for _, line := range lines {
			v.header.Add(name, line)
		}
	}
	if v.call.Host == "" {
		v.call.Host = v.header.Get("Host")
	}
	if call.Route == "" {
		v.call.Route = findRoute(calls, call.Method, v.path)
	}
	return v
}

// findRoute returns the route of a path, as far as previous calls show it. In gRPC it is the path.
func findRoute(calls []route.Noted, method, path string) string {
	if method == "" {
		return path
	}
	return route.Find(calls, method, path)
}

func (v *callView) Context() context.Context    { return v.ctx }
func (v *callView) Method() string              { return v.call.Method }
func (v *callView) Path() string                { return v.path }
func (v *callView) Route() string               { return v.call.Route }
func (v *callView) RemoteAddr() netip.Addr      { return adapter.PeerAddr(v.call.RemoteAddr) }
func (v *callView) Host() string                { return v.call.Host }
func (v *callView) Header(name string) []string { return v.header[name] }
func (v *callView) Query(name string) string    { return v.query.Get(name) }
func (v *callView) Value(key any) any           { return v.ctx.Value(key) }

// Cookie implements View, as net/http reads cookies.
func (v *callView) Cookie(name string) string {
	r := http.Request{Header: v.header}
	cookie, err := r.Cookie(name)
	if err != nil {
		return ""
	}
	return cookie.Value
}

// Param implements View. It knows only the kind of parameters that all frameworks have: whole
// segments of the path.
func (v *callView) Param(name string) string { return route.Param(v.call.Route, v.sent, name) }

// Size implements View.
func (v *callView) Size() int64 {
	size, err := strconv.ParseInt(v.header.Get("Content-Length"), 10, 64)
	if err != nil || size < 0 {
		return -1
	}
	return size
}

// ResponseHeader implements View. There is no reply.
func (v *callView) ResponseHeader() adapter.HeaderWriter { return http.Header{} }
