package console

import (
	"context"
	"net/http"
	"net/netip"

	"github.com/accesslimit/accesslimit/core/adapter"
)

// view shows a request of the page to the handler's own limit, which needs only the caller's
// address.
type view struct {
	r      *http.Request
	header http.Header
}

func (v *view) Context() context.Context             { return steady(v.r) }
func (v *view) Method() string                       { return v.r.Method }
func (v *view) Path() string                         { return v.r.URL.Path }
func (v *view) Route() string                        { return "" }
func (v *view) RemoteAddr() netip.Addr               { return adapter.PeerAddr(v.r.RemoteAddr) }
func (v *view) Host() string                         { return v.r.Host }
func (v *view) Header(name string) []string          { return v.r.Header[name] }
func (v *view) Query(string) string                  { return "" }
func (v *view) Param(string) string                  { return "" }
func (v *view) Cookie(string) string                 { return "" }
func (v *view) Value(any) any                        { return nil }
func (v *view) Size() int64                          { return v.r.ContentLength }
func (v *view) ResponseHeader() adapter.HeaderWriter { return v.header }
