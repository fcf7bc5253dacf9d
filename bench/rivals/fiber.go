package rivals

import (
	"github.com/gofiber/fiber/v2"
	"github.com/gofiber/fiber/v2/middleware/limiter"
)

// fiberFiber is fiber's own: a fixed window.
var fiberFiber = limited("fiber", "fiber's own", OursXRateLimit, func() func() func() {
	return fastCaller(fiberWith([]fiber.Handler{limiter.New(limiter.Config{Max: middlewareMax, Expiration: middlewareWindow})}))
})
