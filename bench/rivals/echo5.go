package rivals

import (
	"github.com/labstack/echo/v5"
	"github.com/labstack/echo/v5/middleware"

	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/echo5limit"
)

var echo5Framework = framework{
	"echo v5", core.HeadersXRateLimit,
	func() newCaller { return echo5With() },
	func(limiter *core.Limiter, rule core.Rule) newCaller { return echo5With(echo5limit.New(limiter, rule)) },
	func(check *core.Check) newCaller {
		return echo5With(func(echo.HandlerFunc) echo.HandlerFunc {
			return func(c *echo.Context) error {
				echo5limit.Allow(c, check, handlersSubject)
				return nil
			}
		})
	},
}

// echo5Echo is echo's own: x/time/rate in a map. It sends two of the three X-RateLimit headers.
var echo5Echo = limited("echo v5", "echo v5's own", OursXRateLimit, func() newCaller {
	store := middleware.NewRateLimiterMemoryStoreWithConfig(middleware.RateLimiterMemoryStoreConfig{
		Rate: middlewareMax, Burst: middlewareMax,
	})
	return echo5With(middleware.RateLimiter(store))
})

func echo5With(middlewares ...echo.MiddlewareFunc) newCaller {
	router := echo.New()
	router.GET("/list", func(*echo.Context) error { return nil }, middlewares...)
	return httpCaller(router)
}
