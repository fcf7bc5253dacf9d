package echo5limit_test

import (
	"context"
	"log/slog"
	"net"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"github.com/labstack/echo/v5"
	"github.com/labstack/echo/v5/middleware"

	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/core/adaptertest"
	"github.com/accesslimit/accesslimit/echo5limit"
)

// serveBy returns a function that serves an app with echo, through the adapter.
func serveBy(config echo.RouterConfig) func(testing.TB, net.Listener, adaptertest.App) (stop func()) {
	return func(_ testing.TB, l net.Listener, app adaptertest.App) (stop func()) {
		e := newEcho(config)
		e.Use(entering(app))
		for _, rules := range app.Use {
			e.Use(echo5limit.New(app.Limiter, rules...))
		}
		for _, route := range app.Routes {
			add(e, route)
		}
		return adaptertest.ServeHTTP(l, e)
	}
}

// newEcho returns an Echo that logs nothing and recovers.
func newEcho(config echo.RouterConfig) *echo.Echo {
	e := echo.NewWithConfig(echo.Config{Router: echo.NewRouter(config), Logger: slog.New(slog.DiscardHandler)})
	e.Use(recovery())
	return e
}

func recovery() echo.MiddlewareFunc {
	return middleware.RecoverWithConfig(middleware.RecoverConfig{DisablePrintStack: true})
}

// entering returns the middleware in front.
func entering(app adaptertest.App) echo.MiddlewareFunc {
	return func(next echo.HandlerFunc) echo.HandlerFunc {
		return func(c *echo.Context) error {
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

// patterns writes a pattern of net/http as echo does.
var patterns = strings.NewReplacer("{rest...}", "*", "{", ":", "}", "")

func add(e *echo.Echo, route adaptertest.Route) {
	method := map[string]string{"": http.MethodGet, "*": echo.RouteAny}[route.Method]
	if method == "" {
		method = route.Method
	}
	var middlewares []echo.MiddlewareFunc
	for _, guard := range route.Guards {
		middlewares = append(middlewares, echo5limit.With(guard))
	}
	if route.Recovers {
		middlewares = append(middlewares, recovery())
	}
	e.Add(method, patterns.Replace(route.Path), func(c *echo.Context) error {
		h := &handling{c: c}
		route.Serve(h)
		return h.err
	}, middlewares...)
}

// handling is what the app does with a call. err is what the handler returns.
type handling struct {
	c   *echo.Context
	err error
}

func (h *handling) Context() context.Context { return h.c.Request().Context() }
func (h *handling) Reply(status int)         { h.err = h.c.String(status, "replied") }
func (h *handling) Header(name string) string {
	return h.c.Request().Header.Get(name)
}
func (h *handling) Query(name string) string { return h.c.QueryParam(name) }
func (h *handling) Flush()                   { h.err = http.NewResponseController(h.c.Response()).Flush() }
func (h *handling) Cookie(name string) string {
	cookie, err := h.c.Cookie(name)
	if err != nil {
		return ""
	}
	return cookie.Value
}
func (h *handling) Text(text string) {
	h.c.Response().Header().Set(echo.HeaderContentLength, strconv.Itoa(len(text)))
	h.err = h.c.String(http.StatusOK, text)
}
func (h *handling) Allow(check *core.Check, subject string) bool {
	return echo5limit.Allow(h.c, check, subject)
}
func (h *handling) OwnLimits(guard *core.Guard) { h.err = echo5limit.OwnLimits(guard)(h.c) }
