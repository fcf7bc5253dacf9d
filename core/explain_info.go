package core

import (
	"context"
	"math"
	"net/http"
	"net/netip"
	"net/url"
	"strconv"
	"strings"

	"github.com/accesslimit/accesslimit/core/internal/pathmatch"
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

func newInfoView(ctx context.Context, info CallInfo, guards []*Guard) *infoView {
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
		v.info.Route = findRoute(guards, info.Method, v.path)
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

// findRoute returns the route of a path, as far as the calls so far show it. It is the path itself
// if that is a route, as always in gRPC. Otherwise it is the only route that the path can match, or
// "". Routes for all paths below them count only if no other route matches, and then the longest
// does.
func findRoute(guards []*Guard, method, path string) (found string) {
	if method == "" {
		return path
	}
	method = countedMethod(method)
	several := false
	for _, g := range guards {
		noted := g.noted()
		for _, r := range noted.routes {
			switch {
			case r.method != method || r.route == found || !canMatch(r.route, path, noted.loose):
			case r.route == path:
				return path
			case found == "" || precision(r.route) > precision(found):
				several, found = false, r.route
			case precision(r.route) == precision(found):
				several = true
			}
		}
	}
	if several {
		return ""
	}
	return found
}

// isSubtree reports whether a route matches all paths below it, as a route with a slash at its end
// does in net/http. It returns false for /, which does so only in net/http, and which all
// frameworks use as a plain route.
func isSubtree(route string) bool { return len(route) > 1 && strings.HasSuffix(route, "/") }

// precision ranks the routes that a path can match. A route that is no subtree goes before all
// subtrees, and a longer subtree before a shorter one.
func precision(route string) int {
	if isSubtree(route) {
		return len(route)
	}
	return math.MaxInt
}

// canMatch reports whether a path may belong to a route, in any of the frameworks. A segment with
// one of the characters that mark wildcards in one of them is taken for a wildcard.
func canMatch(route, path string, loose pathmatch.Looseness) bool {
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
		case loose&pathmatch.AnyCase == 0 || !strings.EqualFold(pattern, segments[i]):
			return false
		}
	}
	return len(patterns) == len(segments) || isSubtree(route)
}

func (v *infoView) Context() context.Context    { return v.ctx }
func (v *infoView) Method() string              { return v.info.Method }
func (v *infoView) Path() string                { return v.path }
func (v *infoView) Route() string               { return v.info.Route }
func (v *infoView) RemoteAddr() netip.Addr      { return PeerAddr(v.info.RemoteAddr) }
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
func (v *infoView) ResponseHeader() HeaderWriter { return http.Header{} }
