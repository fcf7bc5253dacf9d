package fiberlimit_test

import (
	"testing"

	"github.com/gofiber/fiber/v2"
	"github.com/valyala/fasthttp"

	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/fiberlimit"
	"github.com/accesslimit/accesslimit/internal/handlercost"
	"github.com/accesslimit/accesslimit/internal/limitertest"
)

// BenchmarkMiddleware measures a call in this process, with and without the middleware, which sends
// its headers.
func BenchmarkMiddleware(b *testing.B) { handlercost.Benchmark(b, measured(b), "/bare", "/limited") }

// The middleware allocates nothing.
func TestAllocations(t *testing.T) { handlercost.WantAllocs(t, measured(t), 0) }

// measured returns the calls of an app whose handlers do nothing else.
func measured(t testing.TB) handlercost.Caller {
	limiter := limitertest.New(t, core.Options{})
	limit := fiberlimit.New(limiter, core.Rule{Name: "api", Limit: core.PerSecond(1e9).Bucket(0)})
	app := fiber.New()
	app.Get("/bare", func(*fiber.Ctx) error { return nil })
	app.Get("/limited", limit, func(*fiber.Ctx) error { return nil })
	serve := app.Handler()
	return func(path string) func() {
		call := new(fasthttp.RequestCtx)
		call.Request.SetRequestURI(path)
		return func() {
			call.Response.Reset()
			serve(call)
		}
	}
}
