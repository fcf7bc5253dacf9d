package rivals

import (
	"github.com/gofiber/fiber/v2/middleware/limiter"
)

// fiberFiber is fiber's own: a fixed window.
var fiberFiber = limited("fiber", "fiber's own", OursXRateLimit, func() newCaller {
	return fiberWith(limiter.New(limiter.Config{Max: middlewareMax, Expiration: middlewareWindow}))
})
