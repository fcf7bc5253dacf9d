package replay

import (
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
	sent  string // the path as it was sent
	path  string // as frameworks route it
	query string
}

// show makes the view that of another call.
func (v *view) show(c *accesslog.Call) {
	sent, query, _ := strings.Cut(c.URI, "?")
	if !strings.HasPrefix(sent, "/") {
		sent = pathOfURL(sent)
	}
	*v = view{call: c, sent: sent, path: route.Path(c.Method, sent), query: query}
}

// pathOfURL returns the path of an absolute URL, as clients send it to proxies, or the text itself.
func pathOfURL(sent string) string {
	if _, rest, ok := strings.Cut(sent, "://"); ok {
		_, path, _ := strings.Cut(rest, "/")
		return "/" + path
	}
	return sent
}

func (v *view) Context() context.Context    { return context.Background() }
func (v *view) Method() string              { return v.call.Method }
func (v *view) Path() string                { return v.path }
func (v *view) Route() string               { return v.call.Route }
func (v *view) RemoteAddr() netip.Addr      { return v.call.Address }
func (v *view) Host() string                { return v.call.Host }
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
