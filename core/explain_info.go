package core

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

// infoView is a CallInfo as a View.
type infoView struct {
	ctx    context.Context
	info   CallInfo
	sent   string // the path as it was sent, without the query
	path   string // the path as frameworks route it
	query  url.Values
	header http.Header // with names in canonical form
}

func newInfoView(ctx context.Context, info CallInfo, calls []route.Noted) *infoView {
	sent, query, _ := strings.Cut(info.Path, "?")
	v := &infoView{ctx: ctx, info: info, sent: sent, path: routedPath(info.Method, sent), header: make(http.Header, len(info.Header))}
	v.query, _ = url.ParseQuery(query) // malformed parts are left out, as in net/http
	for name, lines := range info.Header {
		for _, line := range lines {
			v.header.Add(name, line)
		}
	}
	if v.info.Host == "" {
		v.info.Host = v.header.Get("Host")
	}
	if info.Route == "" {
		v.info.Route = findRoute(calls, info.Method, v.path)
	}
	return v
}

// routedPath returns a path as net/http shows it to routers: decoded, unless it is escaped in
// another way than net/http escapes it.
func routedPath(method, sent string) string {
	u := url.URL{}
	switch decoded, err := url.PathUnescape(sent); {
	case method == "" || err != nil: // gRPC, or a path that net/http refuses
		return sent
	default:
		if u.Path = decoded; u.EscapedPath() != sent {
			return sent
		}
		return decoded
	}
}

// findRoute returns the route of a path, as far as calls so far show it. In gRPC it is the path.
func findRoute(calls []route.Noted, method, path string) string {
	if method == "" {
		return path
	}
	return route.Find(calls, method, path)
}

func (v *infoView) Context() context.Context    { return v.ctx }
func (v *infoView) Method() string              { return v.info.Method }
func (v *infoView) Path() string                { return v.path }
func (v *infoView) Route() string               { return v.info.Route }
func (v *infoView) RemoteAddr() netip.Addr      { return adapter.PeerAddr(v.info.RemoteAddr) }
func (v *infoView) Host() string                { return v.info.Host }
func (v *infoView) Header(name string) []string { return v.header[name] }
func (v *infoView) Query(name string) string    { return v.query.Get(name) }
func (v *infoView) Value(key any) any           { return v.ctx.Value(key) }

// Cookie implements View, as net/http reads cookies.
func (v *infoView) Cookie(name string) string {
	r := http.Request{Header: v.header}
	cookie, err := r.Cookie(name)
	if err != nil {
		return ""
	}
	return cookie.Value
}

// Param implements View. It knows the parameters that all frameworks have: a segment of the path.
func (v *infoView) Param(name string) string {
	segments := strings.Split(v.sent, "/")
	for i, pattern := range strings.Split(v.info.Route, "/") {
		if i < len(segments) && (pattern == ":"+name || pattern == "{"+name+"}") {
			text, err := url.PathUnescape(segments[i])
			if err != nil {
				return segments[i]
			}
			return text
		}
	}
	return ""
}

// Size implements View.
func (v *infoView) Size() int64 {
	size, err := strconv.ParseInt(v.header.Get("Content-Length"), 10, 64)
	if err != nil || size < 0 {
		return -1
	}
	return size
}

// ResponseHeader implements View. There is no reply.
func (v *infoView) ResponseHeader() adapter.HeaderWriter { return http.Header{} }
