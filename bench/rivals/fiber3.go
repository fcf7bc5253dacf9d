package rivals

import (
	"github.com/gofiber/fiber/v3"
	"github.com/gofiber/fiber/v3/middleware/limiter"

	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/fiber3limit"
)

var fiber3Framework = framework{
	"fiber v3", core.HeadersXRateLimitDelta,
	func() newCaller { return fiber3With() },
	func(limiter *core.Limiter, rule core.Rule) newCaller {
		return fiber3With(fiber3limit.New(limiter, rule))
	},
	func(check *core.Check) newCaller {
		return fiber3With(func(c fiber.Ctx) error {
			fiber3limit.Allow(c, check, handlersSubject)
			return nil
		})
	},
}

// fiber3Fiber is fiber's own: a fixed window.
var fiber3Fiber = limited("fiber v3", "fiber v3's own", OursXRateLimit, func() newCaller {
	return fiber3With(limiter.New(limiter.Config{Max: middlewareMax, Expiration: middlewareWindow}))
})

func fiber3With(middlewares ...any) newCaller {
	app := fiber.New()
	handlers := append(middlewares, func(fiber.Ctx) error { return nil })
	app.Get("/list", handlers[0], handlers[1:]...)
	return fastCaller(app.Handler())
}
