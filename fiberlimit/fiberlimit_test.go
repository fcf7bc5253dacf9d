package fiberlimit_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"testing"

	"github.com/gofiber/fiber/v2"
	"github.com/gofiber/fiber/v2/middleware/recover"
	"go.uber.org/goleak"

	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/core/adaptertest"
	"github.com/accesslimit/accesslimit/fiberlimit"
	"github.com/accesslimit/accesslimit/internal/leakcheck"
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
		for _, rules := range app.Use {
			router.Use(fiberlimit.New(app.Limiter, rules...))
		}
		for _, route := range app.Routes {
			path := strings.NewReplacer("{rest...}", "*", "{", ":", "}", "").Replace(route.Path)
			var handlers []fiber.Handler
			for _, guard := range route.Guards {
				handlers = append(handlers, fiberlimit.With(guard))
			}
			if route.Recovers {
				handlers = append(handlers, recover.New())
			}
			handlers = append(handlers, func(c *fiber.Ctx) error {
				h := &handling{c: c}
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
	c   *fiber.Ctx
	err error // what the handler returns
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

// TestHeadersAsWritten runs the tricks with headers while fiber leaves their names as they were sent,
// and reads a body, with its trailers, only when a handler asks for it.
func TestHeadersAsWritten(t *testing.T) {
	adaptertest.RunTricks(t, adaptertest.Adapter{Serve: serve(fiber.Config{DisableHeaderNormalizing: true, StreamRequestBody: true}), Cannot: cannot})
}

// endings are fiber's own ways for a call to end.
var endings = []adaptertest.Ending{
	ending("an Error", 404, func(*fiber.Ctx) error { return fiber.NewError(404) }),
	ending("one of fiber's errors", 401, func(*fiber.Ctx) error { return fiber.ErrUnauthorized }),
	ending("a wrapped Error", 422, func(*fiber.Ctx) error { return fmt.Errorf("asked: %w", fiber.ErrUnprocessableEntity) }),
	ending("a plain error", 500, func(*fiber.Ctx) error { return errors.New("broken") }),
	ending("a reply, then an error", 500, func(c *fiber.Ctx) error {
		_ = c.SendString("half of it")
		return errors.New("broken")
	}),
	ending("a refusal, then another error", 409, func(c *fiber.Ctx) error {
		_ = c.SendStatus(403)
		return fiber.ErrConflict
	}),
	ending("Status alone", 418, func(c *fiber.Ctx) error { c.Status(418); return nil }),
	ending("SendStatus", 204, func(c *fiber.Ctx) error { return c.SendStatus(204) }),
	ending("JSON", 400, func(c *fiber.Ctx) error { return c.Status(400).JSON(fiber.Map{"field": "missing"}) }),
	ending("Redirect", 302, func(c *fiber.Ctx) error { return c.Redirect("/elsewhere") }),
	ending("a body, then a status", 500, func(c *fiber.Ctx) error {
		_ = c.SendString("all of it is sent later")
		return c.SendStatus(500)
	}),
	ending("a stream", 200, func(c *fiber.Ctx) error {
		// fasthttp would send the end of the body to a HEAD, too.
		if c.Method() != fiber.MethodHead {
			c.Context().SetBodyStreamWriter(func(w *bufio.Writer) { _, _ = w.WriteString("later") })
		}
		return nil
	}),
	{Name: "a panic after a reply", Outcome: 500, Handle: func(h adaptertest.Handling) {
		h.Text("not sent yet")
		panic("a handler's own fault")
	}},
}

func ending(name string, status int, handle fiber.Handler) adaptertest.Ending {
	return adaptertest.Ending{Name: name, Outcome: status, Handle: func(h adaptertest.Handling) {
		h.(*handling).err = handle(h.(*handling).c)
	}}
}

// FuzzPaths tries paths on fiber's router as it is, and as its options make it route by other forms
// of the path.
func FuzzPaths(f *testing.F) {
	adaptertest.FuzzPaths(f,
		adaptertest.Adapter{Serve: serve(fiber.Config{})},
		adaptertest.Adapter{Serve: serve(fiber.Config{UnescapePath: true})},
		adaptertest.Adapter{Serve: serve(fiber.Config{StrictRouting: true})},
		adaptertest.Adapter{Serve: serve(fiber.Config{CaseSensitive: true})},
		adaptertest.Adapter{Serve: serve(fiber.Config{StrictRouting: true, CaseSensitive: true})},
		adaptertest.Adapter{Serve: serve(fiber.Config{StrictRouting: true, CaseSensitive: true, UnescapePath: true})},
	)
}

func TestMain(m *testing.M) {
	leakcheck.Main(m,
		// fasthttp updates the date every second for all of its servers, once the first one has
		// started.
		goleak.IgnoreAnyFunction("github.com/valyala/fasthttp.updateServerDate.func1"),
		// The cleaner of a server that has ended notices that only after sleeping for 10 s.
		goleak.IgnoreAnyFunction("github.com/valyala/fasthttp.(*workerPool).Start.func2"),
	)
}
