package frameworks

import (
	"context"
	"io"
	"net/http"
	"strconv"

	"github.com/labstack/echo/v4"
	"github.com/labstack/echo/v4/middleware"

	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/core/adaptertest"
	"github.com/accesslimit/accesslimit/echolimit"
)

// Echo returns an app made with echo, with middlewares in front of the router.
func Echo(app adaptertest.App, pre ...echo.MiddlewareFunc) *echo.Echo {
	e := echo.New()
	e.Logger.SetOutput(io.Discard)
	e.Pre(pre...)
	e.Use(middleware.Recover(), beforeEcho(app))
	for _, rules := range app.Use {
		e.Use(echolimit.New(app.Limiter, rules...))
	}
	for _, route := range app.Routes {
		path := pathFor(route, "*")
		var middlewares []echo.MiddlewareFunc
		for _, guard := range route.Guards {
			middlewares = append(middlewares, echolimit.With(guard))
		}
		if route.Recovers {
			middlewares = append(middlewares, middleware.Recover())
		}
		handler := func(c echo.Context) error {
			h := &EchoHandling{C: c}
			route.Serve(h)
			return h.Err
		}
		switch route.Method {
		case "":
			e.GET(path, handler, middlewares...)
		case "*":
			e.Any(path, handler, middlewares...)
		default:
			e.Add(route.Method, path, handler, middlewares...)
		}
	}
	return e
}

func beforeEcho(app adaptertest.App) echo.MiddlewareFunc {
	return func(next echo.HandlerFunc) echo.HandlerFunc {
		return func(c echo.Context) error {
			for name, value := range app.Values {
				c.Set(name, value)
			}
			if app.Before != nil {
				c.SetRequest(c.Request().WithContext(app.Before(c.Request().Context())))
			}
			return next(c)
		}
	}
}

// EchoHandling is what a handler of echo can do. It implements adaptertest.Handling.
type EchoHandling struct {
	C   echo.Context
	Err error // what the handler returns
}

func (h *EchoHandling) Context() context.Context  { return h.C.Request().Context() }
func (h *EchoHandling) Header(name string) string { return h.C.Request().Header.Get(name) }
func (h *EchoHandling) Query(name string) string  { return h.C.QueryParam(name) }
func (h *EchoHandling) Flush()                    { h.C.Response().Flush() }
func (h *EchoHandling) Cookie(name string) string {
	cookie, err := h.C.Cookie(name)
	if err != nil {
		return ""
	}
	return cookie.Value
}
func (h *EchoHandling) Text(text string) {
	h.C.Response().Header().Set("Content-Length", strconv.Itoa(len(text)))
	_ = h.C.String(http.StatusOK, text)
}
func (h *EchoHandling) Reply(status int) { _ = h.C.String(status, "replied") }
func (h *EchoHandling) Allow(check *core.Check, subject string) bool {
	return echolimit.Allow(h.C, check, subject)
}
func (h *EchoHandling) OwnLimits(guard *core.Guard) { h.Err = echolimit.OwnLimits(guard)(h.C) }
