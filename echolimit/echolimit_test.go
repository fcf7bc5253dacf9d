package echolimit_test

import (
	"context"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"github.com/labstack/echo/v4"
	"github.com/labstack/echo/v4/middleware"

	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/core/adaptertest"
	"github.com/accesslimit/accesslimit/echolimit"
)

func TestAdapter(t *testing.T) {
	adaptertest.Run(t, adaptertest.Adapter{Serve: serve, Endings: endings})
}

// TestMethodOverride runs the adapter's tests where callers may override the method by a header,
// which echo reads before Use.
func TestMethodOverride(t *testing.T) {
	adaptertest.RunPaths(t, adaptertest.Adapter{Serve: serveAfter(middleware.MethodOverride())})
}

func serve(t testing.TB, l net.Listener, app adaptertest.App) (stop func()) {
	return serveAfter()(t, l, app)
}

// serveAfter serves with middlewares in front of the router.
func serveAfter(pre ...echo.MiddlewareFunc) func(testing.TB, net.Listener, adaptertest.App) (stop func()) {
	return func(_ testing.TB, l net.Listener, app adaptertest.App) (stop func()) {
		e := newEcho(app)
		e.Pre(pre...)
		server := &http.Server{Handler: e}
		go func() { _ = server.Serve(l) }()
		return func() { _ = server.Close() }
	}
}

func newEcho(app adaptertest.App) *echo.Echo {
	e := echo.New()
	e.Logger.SetOutput(io.Discard)
	e.Use(middleware.Recover(), before(app))
	e.Use(limits(app.Limiter, app.Use)...)
	for _, route := range app.Routes {
		path := strings.NewReplacer("{rest...}", "*", "{", ":", "}", "").Replace(route.Path)
		middlewares := limits(app.Limiter, route.Limits)
		for _, guard := range route.Guards {
			middlewares = append(middlewares, echolimit.With(guard))
		}
		if route.Recovers {
			middlewares = append(middlewares, middleware.Recover())
		}
		handler := func(c echo.Context) error {
			h := &handling{c: c, limiter: app.Limiter}
			route.Serve(h)
			return h.err
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

func limits(limiter *core.Limiter, lists [][]core.Rule) (middlewares []echo.MiddlewareFunc) {
	for _, rules := range lists {
		middlewares = append(middlewares, echolimit.New(limiter, rules...))
	}
	return middlewares
}

func before(app adaptertest.App) echo.MiddlewareFunc {
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

type handling struct {
	c       echo.Context
	limiter *core.Limiter
	err     error // what the handler returns
}

func (h *handling) Context() context.Context  { return h.c.Request().Context() }
func (h *handling) Header(name string) string { return h.c.Request().Header.Get(name) }
func (h *handling) Query(name string) string  { return h.c.QueryParam(name) }
func (h *handling) Flush()                    { h.c.Response().Flush() }
func (h *handling) Cookie(name string) string {
	cookie, err := h.c.Cookie(name)
	if err != nil {
		return ""
	}
	return cookie.Value
}
func (h *handling) Text(text string) {
	h.c.Response().Header().Set("Content-Length", strconv.Itoa(len(text)))
	_ = h.c.String(http.StatusOK, text)
}
func (h *handling) Reply(status int) { _ = h.c.String(status, "replied") }
func (h *handling) Allow(check *core.Check, subject string) bool {
	return echolimit.Allow(h.c, check, subject)
}
func (h *handling) OwnLimits(guard *core.Guard) { h.err = echolimit.OwnLimits(guard)(h.c) }
