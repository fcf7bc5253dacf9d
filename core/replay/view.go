package replay

import (
	"cmp"
	"context"
	"net/http"
	"net/netip"
	"net/url"
	"strings"

	"github.com/accesslimit/accesslimit/core/adapter"
	"github.com/accesslimit/accesslimit/core/internal/route"
	"github.com/accesslimit/accesslimit/core/replay/internal/accesslog"
)

// view shows a call in a log as an adapter shows a request.
type view struct {
	call  *accesslog.Call
	host  string
	sent  string // the path as it was sent
	path  string // as frameworks route it
	query string
}

// show makes the view that of another call.
func (v *view) show(c *accesslog.Call) {
	sent, query, _ := strings.Cut(c.URI, "?")
	host := c.Host
	if _, absolute, ok := strings.Cut(sent, "://"); ok && !strings.HasPrefix(sent, "/") {
		host, sent = splitURL(absolute)
		host = cmp.Or(host, c.Host)
	}
	*v = view{call: c, host: host, sent: sent, path: route.Path(c.Method, sent), query: query}
}

// splitURL returns the host and the path of an absolute URL, without its scheme, as clients send it to
// proxies. The host takes precedence over the Host header (RFC 9112 section 3.2.2).
func splitURL(url string) (host, path string) {
	host, path, _ = strings.Cut(url, "/")
	return host[strings.LastIndexByte(host, '@')+1:], "/" + path
}

func (v *view) Context() context.Context    { return context.Background() }
func (v *view) Method() string              { return v.call.Method }
func (v *view) Path() string                { return v.path }
func (v *view) Route() string               { return v.call.Route }
func (v *view) RemoteAddr() netip.Addr      { return v.call.Address }
func (v *view) Host() string                { return v.host }
func (v *view) Header(name string) []string { return v.call.Named("header", name) }
func (v *view) Size() int64                 { return v.call.Size }

// Query implements adapter.View.
func (v *view) Query(name string) string {
	query, _ := url.ParseQuery(v.query) // malformed parts are left out, as in net/http
	return query.Get(name)
}

// Cookie implements adapter.View, as net/http reads cookies.
func (v *view) Cookie(name string) string {
	if texts := v.call.Named("cookie", name); texts != nil {
		return texts[0]
	}
	r := http.Request{Header: http.Header{"Cookie": v.Header("Cookie")}}
	cookie, err := r.Cookie(name)
	if err != nil {
		return ""
	}
	return cookie.Value
}

// Param implements adapter.View, for the parameters that are whole segments of the path.
func (v *view) Param(name string) string {
	return route.Param(v.call.Route, v.sent, name)
}

// Value implements adapter.View: a field value:NAME.
func (v *view) Value(key any) any {
	name, _ := key.(string)
	if texts := v.call.Named("value", name); texts != nil {
		return texts[0]
	}
	return nil
}

// ResponseHeader implements adapter.View. Nobody reads the reply.
func (v *view) ResponseHeader() adapter.HeaderWriter { return noHeader{} }

type noHeader struct{}

func (noHeader) Set(_, _ string) {}
func (noHeader) Add(_, _ string) {}
