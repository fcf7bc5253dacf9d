package fiberlimit_test

import (
	"testing"

	"github.com/gofiber/fiber/v2"
	"github.com/valyala/fasthttp"

	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/fiberlimit"
	"github.com/accesslimit/accesslimit/internal/limitertest"
)

// BenchmarkMiddleware measures a call in this process, with and without the middleware, which sends
// its headers.
func BenchmarkMiddleware(b *testing.B) {
	limiter := limitertest.New(b, core.Options{})
	limit := fiberlimit.New(limiter, core.Rule{Name: "api", Limit: core.PerSecond(1e9).Bucket(0)})
	app := fiber.New()
	app.Get("/bare", func(*fiber.Ctx) error { return nil })
	app.Get("/limited", limit, func(*fiber.Ctx) error { return nil })
	serve := app.Handler()
	for _, name := range []string{"bare", "limited"} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			b.RunParallel(func(pb *testing.PB) {
				call := new(fasthttp.RequestCtx)
				call.Request.SetRequestURI("/" + name)
				for pb.Next() {
					call.Response.Reset()
					serve(call)
				}
			})
		})
	}
}
