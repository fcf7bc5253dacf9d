package rivals

import (
	"time"

	"github.com/labstack/echo/v4/middleware"
	"golang.org/x/time/rate"
)

// echo's own: x/time/rate in a map. It sends no headers.

var echoStore = InProcess{"echo's own", func(l Limit, _ int) (func(string) bool, func()) {
	store := middleware.NewRateLimiterMemoryStoreWithConfig(middleware.RateLimiterMemoryStoreConfig{
		Rate: rate.Limit(l.perSecond()), Burst: l.Max, ExpiresIn: time.Hour,
	})
	return func(subject string) bool {
		ok, err := store.Allow(subject)
		return err == nil && ok
	}, func() {}
}}

var echoEcho = limited("echo", "echo's own", OursNoHeaders, func() newCaller {
	store := middleware.NewRateLimiterMemoryStoreWithConfig(middleware.RateLimiterMemoryStoreConfig{
		Rate: middlewareMax, Burst: middlewareMax,
	})
	return echoWith(middleware.RateLimiter(store))
})
