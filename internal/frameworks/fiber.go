package frameworks

import (
	"context"
	"net"
	"testing"

	"github.com/gofiber/fiber/v2"
	"github.com/gofiber/fiber/v2/middleware/recover"

	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/core/adaptertest"
	"github.com/accesslimit/accesslimit/fiberlimit"
)

// Fiber returns the adapter for a configuration of fiber.
func Fiber(config fiber.Config) adaptertest.Adapter {
	config.DisableStartupMessage = true
	return adaptertest.Adapter{
		Serve: func(_ testing.TB, l net.Listener, app adaptertest.App) (stop func()) {
			router := fiber.New(config)
			addToFiber(router, app)
			go func() { _ = router.Listener(l) }()
			// Not Shutdown, which checks only every 100 ms whether all connections are closed.
			return func() { _ = l.Close() }
		},
		Cannot: map[adaptertest.Feature]string{
			adaptertest.RouteInUse:     "fiber runs what Use was given before it looks for the route",
			adaptertest.LeavingCallers: "fasthttp does not read from the connection while a handler runs",
		},
	}
}

func addToFiber(router *fiber.App, app adaptertest.App) {
	router.Use(recover.New(), beforeFiber(app))
	for _, rules := range app.Use {
		router.Use(fiberlimit.New(app.Limiter, rules...))
	}
	for _, route := range app.Routes {
		path := pathFor(route, "*")
		var handlers []fiber.Handler
		for _, guard := range route.Guards {
			handlers = append(handlers, fiberlimit.With(guard))
		}
		if route.Recovers {
			handlers = append(handlers, recover.New())
		}
		handlers = append(handlers, func(c *fiber.Ctx) error {
			h := &FiberHandling{C: c}
			route.Serve(h)
			return h.Err
		})
		switch route.Method {
		case "":
			router.Get(path, handlers...)
		case "*":
			router.All(path, handlers...)
		default:
			router.Add(route.Method, path, handlers...)
		}
	}
}

func beforeFiber(app adaptertest.App) fiber.Handler {
	return func(c *fiber.Ctx) error {
		for name, value := range app.Values {
			c.Locals(name, value)
		}
		if app.Before != nil {
			c.SetUserContext(app.Before(c.UserContext()))
		}
		return c.Next()
	}
}

// FiberHandling is what a handler of fiber can do. It implements adaptertest.Handling.
type FiberHandling struct {
	C   *fiber.Ctx
	Err error // what the handler returns
}

func (h *FiberHandling) Context() context.Context  { return h.C.UserContext() }
func (h *FiberHandling) Header(name string) string { return h.C.Get(name) }
func (h *FiberHandling) Cookie(name string) string { return h.C.Cookies(name) }
func (h *FiberHandling) Query(name string) string  { return h.C.Query(name) }
func (h *FiberHandling) Flush()                    {} // fiber sends nothing before the handler returns
func (h *FiberHandling) Text(text string)          { _ = h.C.SendString(text) }
func (h *FiberHandling) Reply(status int)          { _ = h.C.Status(status).SendString("replied") }
func (h *FiberHandling) Allow(check *core.Check, subject string) bool {
	return fiberlimit.Allow(h.C, check, subject)
}
func (h *FiberHandling) OwnLimits(guard *core.Guard) { h.Err = fiberlimit.OwnLimits(guard)(h.C) }
