package echo5limit_test

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/labstack/echo/v5"
	"github.com/labstack/echo/v5/middleware"

	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/echo5limit"
	"github.com/accesslimit/accesslimit/internal/extensiontest"
)

// BenchmarkMiddleware measures a handler that does nothing, alone and behind each limit by address.
// Those with the same headers are to be compared: echo's own sends two X-RateLimit headers.
func BenchmarkMiddleware(b *testing.B) {
	rule := core.Rule{Name: "api", Limit: core.PerSecond(1e6).Bucket(1e6)}
	own := middleware.NewRateLimiterMemoryStoreWithConfig(middleware.RateLimiterMemoryStoreConfig{Rate: 1e6, Burst: 1e6})
	for _, of := range []struct {
		name    string
		headers core.HeaderStyle
		limit   func(*core.Limiter) echo.MiddlewareFunc
	}{
		{"none", 0, func(*core.Limiter) echo.MiddlewareFunc {
			return func(next echo.HandlerFunc) echo.HandlerFunc { return next }
		}},
		{"echo's own", 0, func(*core.Limiter) echo.MiddlewareFunc { return middleware.RateLimiter(own) }},
		{"New, X-RateLimit", core.HeadersXRateLimit, func(l *core.Limiter) echo.MiddlewareFunc { return echo5limit.New(l, rule) }},
		{"NewStore, X-RateLimit", core.HeadersXRateLimit, func(l *core.Limiter) echo.MiddlewareFunc {
			return middleware.RateLimiter(echo5limit.NewStore(l, rule))
		}},
		{"New, no headers", core.NoHeaders, func(l *core.Limiter) echo.MiddlewareFunc { return echo5limit.New(l, rule) }},
	} {
		b.Run(of.name, func(b *testing.B) {
			limiter := extensiontest.NewLimiter(b, core.Options{Headers: of.headers})
			e := newEcho(echo.RouterConfig{})
			e.GET("/list", func(*echo.Context) error { return nil }, of.limit(limiter))
			w, r := httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "/list", nil)
			b.ReportAllocs()
			for b.Loop() {
				clear(w.Header())
				e.ServeHTTP(w, r)
			}
		})
	}
}
