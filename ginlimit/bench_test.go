package ginlimit_test

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/gin-gonic/gin"

	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/ginlimit"
)

// BenchmarkMiddleware measures a call in this process, with and without the middleware, which sends
// its headers, and with the same rule in the handler.
func BenchmarkMiddleware(b *testing.B) {
	limiter, err := core.New(core.Options{})
	if err != nil {
		b.Fatal(err)
	}
	defer limiter.Close()
	limit := ginlimit.New(limiter, core.Rule{Name: "api", Limit: core.PerSecond(1e9).Bucket(0)})
	gin.SetMode(gin.TestMode)
	router := gin.New()
	router.GET("/bare", func(*gin.Context) {})
	router.GET("/limited", limit, func(*gin.Context) {})
	check := limiter.MustCheck(core.Rule{Name: "check", Limit: core.PerSecond(1e9).Bucket(0)})
	router.GET("/checked", func(c *gin.Context) { ginlimit.Allow(c, check, "account:carol") })
	for _, name := range []string{"bare", "limited", "checked"} {
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
