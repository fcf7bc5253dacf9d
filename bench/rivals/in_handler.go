package rivals

import (
	"net/http"

	"github.com/gin-gonic/gin"
	"github.com/gofiber/fiber/v2"
	"github.com/labstack/echo/v4"

	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/echolimit"
	"github.com/accesslimit/accesslimit/fiberlimit"
	"github.com/accesslimit/accesslimit/ginlimit"
	"github.com/accesslimit/accesslimit/nethttplimit"
)

// These handlers check our rule themselves, for a subject that only they know.

const handlersSubject = "user:alice"

func inHandler(framework string, newCaller func(*core.Check) func() func()) Middleware {
	m := ours(framework, func(limiter *core.Limiter) func() func() { return newCaller(limiter.MustCheck(ourRule)) })
	m.Name = InHandler
	return m
}

var handlerNetHTTP = inHandler("net/http", func(check *core.Check) func() func() {
	return httpCaller(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		nethttplimit.Allow(w, r, check, handlersSubject)
	}))
})

var handlerGin = inHandler("gin", func(check *core.Check) func() func() {
	return httpCaller(ginWith(gin.HandlersChain{func(c *gin.Context) { ginlimit.Allow(c, check, handlersSubject) }}))
})

var handlerEcho = inHandler("echo", func(check *core.Check) func() func() {
	return httpCaller(echoWith([]echo.MiddlewareFunc{func(echo.HandlerFunc) echo.HandlerFunc {
		return func(c echo.Context) error {
			echolimit.Allow(c, check, handlersSubject)
			return nil
		}
	}}))
})

var handlerFiber = inHandler("fiber", func(check *core.Check) func() func() {
	return fastCaller(fiberWith([]fiber.Handler{func(c *fiber.Ctx) error {
		fiberlimit.Allow(c, check, handlersSubject)
		return nil
	}}))
})
