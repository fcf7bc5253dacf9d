package fiberlimit_test

import (
	"context"
	"net"
	"strings"
	"testing"

	"github.com/gofiber/fiber/v2"
	"github.com/gofiber/fiber/v2/middleware/recover"

	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/core/adaptertest"
	"github.com/accesslimit/accesslimit/fiberlimit"
)

func TestAdapter(t *testing.T) {
	adaptertest.Run(t, adaptertest.Adapter{
		Serve: serve(fiber.Config{}), Cannot: cannot, Endings: endings,
	})
}

var cannot = map[adaptertest.Feature]string{
	adaptertest.RouteInUse:     "fiber runs what Use was given before it looks for the route",
	adaptertest.LeavingCallers: "fasthttp does not read from the connection while a handler runs",
}

// TestRoutingOptions runs the adapter's tests while fiber routes by other forms of the path.
func TestRoutingOptions(t *testing.T) {
	for name, config := range map[string]fiber.Config{
		"unescaped":        {UnescapePath: true},
		"strict":           {StrictRouting: true, CaseSensitive: true},
		"case only":        {StrictRouting: true},
		"slash only":       {CaseSensitive: true},
		"strict unescaped": {StrictRouting: true, CaseSensitive: true, UnescapePath: true},
	} {
		t.Run(name, func(t *testing.T) {
			adaptertest.RunPaths(t, adaptertest.Adapter{Serve: serve(config), Cannot: cannot})
		})
	}
}

func serve(config fiber.Config) func(testing.TB, net.Listener, adaptertest.App) (stop func()) {
	config.DisableStartupMessage = true
	return func(_ testing.TB, l net.Listener, app adaptertest.App) (stop func()) {
		router := fiber.New(config)
		router.Use(recover.New(), before(app))
		for _, limit := range limits(app.Limiter, app.Use) {
			router.Use(limit)
		}
		for _, route := range app.Routes {
			path := strings.NewReplacer("{rest...}", "*", "{", ":", "}", "").Replace(route.Path)
			handlers := limits(app.Limiter, route.Limits)
			for _, guard := range route.Guards {
				handlers = append(handlers, fiberlimit.With(guard))
			}
			if route.Recovers {
				handlers = append(handlers, recover.New())
			}
			handlers = append(handlers, func(c *fiber.Ctx) error {
				h := &handling{c: c, limiter: app.Limiter}
				route.Serve(h)
				return h.err
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
		go func() { _ = router.Listener(l) }()
		// Not Shutdown, which checks only every 100 ms whether all connections are closed.
		return func() { _ = l.Close() }
	}
}

func limits(limiter *core.Limiter, lists [][]core.Rule) (middlewares []fiber.Handler) {
	for _, rules := range lists {
		middlewares = append(middlewares, fiberlimit.New(limiter, rules...))
	}
	return middlewares
}

func before(app adaptertest.App) fiber.Handler {
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

type handling struct {
	c       *fiber.Ctx
	limiter *core.Limiter
	err     error // what the handler returns
}

func (h *handling) Context() context.Context  { return h.c.UserContext() }
func (h *handling) Header(name string) string { return h.c.Get(name) }
func (h *handling) Cookie(name string) string { return h.c.Cookies(name) }
func (h *handling) Query(name string) string  { return h.c.Query(name) }
func (h *handling) Flush()                    {} // fiber sends nothing before the handler returns
func (h *handling) Text(text string)          { _ = h.c.SendString(text) }
func (h *handling) Reply(status int)          { _ = h.c.Status(status).SendString("replied") }
func (h *handling) Allow(check *core.Check, subject string) bool {
	return fiberlimit.Allow(h.c, check, subject)
}
func (h *handling) OwnLimits(guard *core.Guard) { h.err = fiberlimit.OwnLimits(guard)(h.c) }

// TestHeadersAsWritten runs the adapter's tests while fiber leaves the names of headers as they
// were sent.
func TestHeadersAsWritten(t *testing.T) {
	adaptertest.RunTricks(t, adaptertest.Adapter{Serve: serve(fiber.Config{DisableHeaderNormalizing: true}), Cannot: cannot})
}
