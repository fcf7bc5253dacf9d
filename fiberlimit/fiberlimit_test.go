package fiberlimit_test

import (
	"bufio"
	"errors"
	"fmt"
	"testing"

	"github.com/gofiber/fiber/v2"
	"go.uber.org/goleak"

	"github.com/accesslimit/accesslimit/core/adaptertest"
	"github.com/accesslimit/accesslimit/internal/frameworks"
	"github.com/accesslimit/accesslimit/internal/leakcheck"
)

func TestAdapter(t *testing.T) {
	adapter := frameworks.Fiber(fiber.Config{})
	adapter.Endings = endings
	adaptertest.Run(t, adapter)
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
			adaptertest.RunPaths(t, frameworks.Fiber(config))
		})
	}
}

// TestHeadersAsWritten runs the tricks with headers while fiber leaves their names as they were sent,
// and reads a body, with its trailers, only when a handler asks for it.
func TestHeadersAsWritten(t *testing.T) {
	adaptertest.RunTricks(t, frameworks.Fiber(fiber.Config{DisableHeaderNormalizing: true, StreamRequestBody: true}))
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
		h.(*frameworks.FiberHandling).Err = handle(h.(*frameworks.FiberHandling).C)
	}}
}

// FuzzPaths tries paths on fiber's router as it is, and as its options make it route by other forms
// of the path.
func FuzzPaths(f *testing.F) {
	adaptertest.FuzzPaths(f,
		frameworks.Fiber(fiber.Config{}),
		frameworks.Fiber(fiber.Config{UnescapePath: true}),
		frameworks.Fiber(fiber.Config{StrictRouting: true}),
		frameworks.Fiber(fiber.Config{CaseSensitive: true}),
		frameworks.Fiber(fiber.Config{StrictRouting: true, CaseSensitive: true}),
		frameworks.Fiber(fiber.Config{StrictRouting: true, CaseSensitive: true, UnescapePath: true}),
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
