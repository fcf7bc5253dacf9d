//go:build !race

package fiberlimit_test

import (
	"testing"

	"github.com/gofiber/fiber/v2"
	"github.com/valyala/fasthttp"

	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/fiberlimit"
	"github.com/accesslimit/accesslimit/internal/limitertest"
)

// The race detector makes sync.Pool forget at random, so allocations are counted without it.

// TestAllocations checks the allocations that the middleware adds to an allowed call: nothing.
func TestAllocations(t *testing.T) {
	limiter := limitertest.New(t, core.Options{})
	app := fiber.New()
	app.Get("/bare", func(*fiber.Ctx) error { return nil })
	app.Get("/limited", fiberlimit.New(limiter, core.Rule{Name: "api", Seconds: 1, MaxCount: 1e9}), func(*fiber.Ctx) error { return nil })
	serve := app.Handler()
	allocs := func(path string) float64 {
		call := new(fasthttp.RequestCtx)
		call.Request.SetRequestURI(path)
		return testing.AllocsPerRun(1000, func() {
			call.Response.Reset()
			serve(call)
		})
	}
	if added := allocs("/limited") - allocs("/bare"); added > 0 {
		t.Errorf("%v allocations, want none", added)
	}
}
