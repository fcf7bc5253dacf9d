package echolimit_test

import (
	"testing"

	"github.com/labstack/echo/v4"

	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/echolimit"
	"github.com/accesslimit/accesslimit/internal/handlercost"
	"github.com/accesslimit/accesslimit/internal/limitertest"
)

// BenchmarkMiddleware measures a call in this process, with and without the middleware, which sends
// its headers.
func BenchmarkMiddleware(b *testing.B) { handlercost.Benchmark(b, measured(b), "/bare", "/limited") }

// The one allocation is that which echo needs to put a middleware around a handler. The values of
// headers are allocated for several calls at once.
func TestAllocations(t *testing.T) { handlercost.WantAllocs(t, measured(t), 1) }

// measured returns a router with handlers that do nothing.
func measured(t testing.TB) handlercost.Caller {
	limiter := limitertest.New(t, core.Options{})
	router, handler := echo.New(), func(echo.Context) error { return nil }
	router.GET("/bare", handler)
	router.GET("/limited", handler, echolimit.New(limiter, core.Rule{Name: "api", Limit: core.PerSecond(1e9).Bucket(0)}))
	return handlercost.Of(router)
}
