package nethttplimit_test

import (
	"net/http"
	"testing"

	"github.com/accesslimit/accesslimit/core/adaptertest"
)

// FuzzPaths tries paths on a *http.ServeMux, which the adapter asks for the route, and on a router
// that it cannot ask.
func FuzzPaths(f *testing.F) {
	adaptertest.FuzzPaths(f,
		adaptertest.Adapter{Serve: serve},
		adaptertest.Adapter{Serve: serveWith(func(mux http.Handler) http.Handler { return http.HandlerFunc(mux.ServeHTTP) })},
	)
}
