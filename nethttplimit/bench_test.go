package nethttplimit_test

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/nethttplimit"
)

// BenchmarkMiddleware measures a call in this process, with and without the middleware, which sends
// its headers.
func BenchmarkMiddleware(b *testing.B) {
	limiter, err := core.New(core.Options{})
	if err != nil {
		b.Fatal(err)
	}
	defer limiter.Close()
	bare := http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})
	limit := nethttplimit.New(limiter, core.Rule{Name: "api", Limit: core.PerSecond(1e9).Bucket(0)})
	for name, handler := range map[string]http.Handler{"bare": bare, "limited": limit(bare)} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			b.RunParallel(func(pb *testing.PB) {
				r, w := httptest.NewRequest("GET", "/", nil), &discard{header: make(http.Header)}
				for pb.Next() {
					clear(w.header)
					handler.ServeHTTP(w, r)
				}
			})
		})
	}
}
