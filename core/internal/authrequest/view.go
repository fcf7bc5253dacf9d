package authrequest

import (
	"net/url"

	"github.com/accesslimit/accesslimit/core/adapter"
)

// view shows the call that a request is about. Its address, cookies and other headers are those of the
// request, because proxies copy them. It implements adapter.RoutedView and adapter.LooseView.
type view struct {
	adapter.View // of the request
	method, host string
	target       *url.URL
}

func (v *view) Method() string           { return v.method }
func (v *view) Host() string             { return v.host }
func (v *view) Route() string            { return "" }
func (v *view) Routed() bool             { return false }
func (v *view) Param(string) string      { return "" }
func (v *view) Query(name string) string { return v.target.Query().Get(name) }

// Path implements adapter.View.
func (v *view) Path() string {
	if v.target.RawPath != "" {
		return v.target.RawPath
	}
	return v.target.Path
}

// Size implements adapter.View. The request has no body, and the length of the call's is not known.
func (v *view) Size() int64 { return -1 }

// Loose implements adapter.LooseView, for the loosest router that may be behind the proxy.
func (v *view) Loose() (anyCase, anySlash bool) { return true, true }

// RouterUnknown implements pathmatch.UnsureView.
func (v *view) RouterUnknown() {}
