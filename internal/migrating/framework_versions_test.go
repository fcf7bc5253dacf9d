package migrating

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/gofiber/fiber/v2"
	fiber3 "github.com/gofiber/fiber/v3"
	"github.com/labstack/echo/v4"
	echo5 "github.com/labstack/echo/v5"
	"github.com/valyala/fasthttp"

	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/echo5limit"
	"github.com/accesslimit/accesslimit/echolimit"
	"github.com/accesslimit/accesslimit/fiber3limit"
	"github.com/accesslimit/accesslimit/fiberlimit"
	"github.com/accesslimit/accesslimit/internal/limitertest"
)

// serve makes a GET of an app, and returns the status.
type serve func(target string) int

func serveEcho(l *core.Limiter, all, route core.Rule) serve {
	e := echo.New()
	e.Use(echolimit.New(l, all))
	e.GET("/users/:id", func(c echo.Context) error { return c.NoContent(http.StatusOK) }, echolimit.New(l, route))
	return serveHTTP(e)
}

func serveEcho5(l *core.Limiter, all, route core.Rule) serve {
	e := echo5.New()
	e.Use(echo5limit.New(l, all))
	e.GET("/users/:id", func(c *echo5.Context) error { return c.NoContent(http.StatusOK) }, echo5limit.New(l, route))
	return serveHTTP(e)
}

func serveHTTP(handler http.Handler) serve {
	return func(target string) int {
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, httptest.NewRequest("GET", target, nil))
		return w.Code
	}
}

func serveFiber(l *core.Limiter, all, route core.Rule) serve {
	app := fiber.New()
	app.Use(fiberlimit.New(l, all))
	app.Get("/users/:id", fiberlimit.New(l, route), func(c *fiber.Ctx) error { return c.SendStatus(http.StatusOK) })
	return serveFast(app.Handler())
}

func serveFiber3(l *core.Limiter, all, route core.Rule) serve {
	app := fiber3.New()
	app.Use("*", fiber3limit.New(l, all))
	app.Get("/users/:id", fiber3limit.New(l, route), func(c fiber3.Ctx) error { return c.SendStatus(http.StatusOK) })
	return serveFast(app.Handler())
}

func serveFast(handler fasthttp.RequestHandler) serve {
	return func(target string) int {
		var call fasthttp.RequestCtx
		call.Request.SetRequestURI("http://service.test" + target)
		handler(&call)
		return call.Response.StatusCode()
	}
}

// A service that moves from one version of a framework to the next one route by route has both in one
// process, and more processes of either. They count together, by named rules and by routes.
func TestVersionsOfAFrameworkCountTogether(t *testing.T) {
	for name, versions := range map[string][2]func(l *core.Limiter, all, route core.Rule) serve{
		"echo": {serveEcho, serveEcho5}, "fiber": {serveFiber, serveFiber3},
	} {
		t.Run(name, func(t *testing.T) {
			limitertest.OnBothEngines(t, func(t *testing.T, options core.Options) {
				limiter := limitertest.New(t, options)
				all := core.Rule{Name: "all", Seconds: 600, MaxCount: 5, Key: core.Global}
				route := core.Rule{Seconds: 600, MaxCount: 3, Key: core.ByRoute}
				old, next := versions[0](limiter, all, route), versions[1](limiter, all, route)
				for i, call := range []struct {
					serve  serve
					target string
					status int
				}{
					{old, "/users/1", 200}, {next, "/users/2", 200}, {old, "/users/3", 200}, {next, "/users/4", 429},
					{old, "/none", 404}, {old, "/none", 429}, {next, "/none", 429},
				} {
					if status := call.serve(call.target); status != call.status {
						t.Errorf("call %d, of %s: status %d, want %d", i+1, call.target, status, call.status)
					}
				}
			})
		})
	}
}
