package fiber3limit_test

import (
	"testing"
	"time"

	"github.com/gofiber/fiber/v3"
	"github.com/gofiber/fiber/v3/middleware/limiter"
	"github.com/valyala/fasthttp"

	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/fiber3limit"
	"github.com/accesslimit/accesslimit/internal/extensiontest"
)

// BenchmarkMiddleware measures a handler that does nothing, alone and behind each limit by address.
// Those with the same headers are to be compared: fiber's own sends three X-RateLimit headers.
func BenchmarkMiddleware(b *testing.B) {
	rule := core.Rule{Name: "api", Seconds: 1, MaxCount: 1e6}
	own := limiter.Config{Max: 1e6, Expiration: time.Second, LimiterMiddleware: limiter.SlidingWindow{}}
	for _, of := range []struct {
		name    string
		headers core.HeaderStyle
		limit   func(*core.Limiter) fiber.Handler
	}{
		{"none", 0, func(*core.Limiter) fiber.Handler { return func(c fiber.Ctx) error { return c.Next() } }},
		{"fiber's own, a sliding window", 0, func(*core.Limiter) fiber.Handler { return limiter.New(own) }},
		{"fiber's own, a fixed window", 0, func(*core.Limiter) fiber.Handler {
			return limiter.New(limiter.Config{Max: 1e6, Expiration: time.Second})
		}},
		{"New, X-RateLimit", core.HeadersXRateLimitDelta, func(l *core.Limiter) fiber.Handler { return fiber3limit.New(l, rule) }},
		{"New, no headers", core.NoHeaders, func(l *core.Limiter) fiber.Handler { return fiber3limit.New(l, rule) }},
	} {
		b.Run(of.name, func(b *testing.B) {
			app := fiber.New()
			app.Get("/list", of.limit(extensiontest.NewLimiter(b, core.Options{Headers: of.headers})), func(fiber.Ctx) error { return nil })
			handler := app.Handler()
			var call fasthttp.RequestCtx
			call.Request.SetRequestURI("http://service.test/list")
			b.ReportAllocs()
			for b.Loop() {
				call.Response.Reset()
				handler(&call)
			}
		})
	}
}
