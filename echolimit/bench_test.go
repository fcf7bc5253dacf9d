package echolimit_test

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/labstack/echo/v4"

	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/echolimit"
)

// BenchmarkMiddleware measures a call in this process, with and without the middleware, which sends
// its headers.
func BenchmarkMiddleware(b *testing.B) {
	limiter, err := core.New(core.Options{})
	if err != nil {
		b.Fatal(err)
	}
	defer limiter.Close()
	limit := echolimit.New(limiter, core.Rule{Name: "api", Limit: core.PerSecond(1e9).Bucket(0)})
	router, handler := echo.New(), func(echo.Context) error { return nil }
	router.GET("/bare", handler)
	router.GET("/limited", handler, limit)
	for _, name := range []string{"bare", "limited"} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			b.RunParallel(func(pb *testing.PB) {
				r, w := httptest.NewRequest("GET", "/"+name, nil), &discard{header: make(http.Header)}
				for pb.Next() {
					clear(w.header)
					router.ServeHTTP(w, r)
				}
			})
		})
	}
}

// discard is a ResponseWriter that keeps nothing.
type discard struct{ header http.Header }

func (d *discard) Header() http.Header         { return d.header }
func (d *discard) Write(p []byte) (int, error) { return len(p), nil }
func (d *discard) WriteHeader(int)             {}
