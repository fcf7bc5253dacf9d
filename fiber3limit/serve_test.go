package fiber3limit_test

import (
	"context"
	"net"
	"strings"
	"testing"

	"github.com/gofiber/fiber/v3"
	"github.com/gofiber/fiber/v3/middleware/recover"

	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/core/adaptertest"
	"github.com/accesslimit/accesslimit/fiber3limit"
)

// cannot names what fiber cannot do.
var cannot = map[adaptertest.Feature]string{
	adaptertest.RouteInUse:     "fiber matches the route after the middlewares of Use",
	adaptertest.LeavingCallers: "no context of fiber ends when the caller leaves",
}

// under returns the adapter for apps that newApp makes.
func under(newApp func() *fiber.App) adaptertest.Adapter {
	return adaptertest.Adapter{Cannot: cannot, Endings: endings, Serve: func(_ testing.TB, l net.Listener, app adaptertest.App) (stop func()) {
		return serve(newApp(), l, app)
	}}
}

// configured returns the adapter for a configuration of fiber.
func configured(config fiber.Config) adaptertest.Adapter {
	config.ReadBufferSize = 32 << 10 // the suite sends long paths
	return under(func() *fiber.App { return fiber.New(config) })
}

// serve serves an app with fiber, through the adapter.
func serve(router *fiber.App, l net.Listener, app adaptertest.App) (stop func()) {
	router.Use("*", recover.New(), func(c fiber.Ctx) error {
		for name, value := range app.Values {
			c.Locals(name, value)
		}
		if app.Before != nil {
			c.SetContext(app.Before(c.Context()))
		}
		return c.Next()
	})
	for _, rules := range app.Use {
		router.Use("*", fiber3limit.New(app.Limiter, rules...))
	}
	for _, route := range app.Routes {
		var handlers []any
		for _, guard := range route.Guards {
			handlers = append(handlers, fiber3limit.With(guard))
		}
		if route.Recovers {
			handlers = append(handlers, recover.New())
		}
		handlers = append(handlers, func(c fiber.Ctx) error {
			h := handling{c, new(error)}
			route.Serve(h)
			return *h.err
		})
		router.Add(methods(router, route.Method), pattern(route.Path), handlers[0], handlers[1:]...)
	}
	serving := make(chan struct{})
	go func() {
		defer close(serving)
		_ = router.Listener(l, fiber.ListenConfig{DisableStartupMessage: true})
	}()
	return func() {
		_ = l.Close() // in case that it does not serve yet
		_ = router.Shutdown()
		<-serving
	}
}

// methods returns the methods of a route, as fiber is told them.
func methods(router *fiber.App, method string) []string {
	switch method {
	case "":
		return []string{fiber.MethodGet}
	case "*":
		return router.Config().RequestMethods
	default:
		return []string{method}
	}
}

// pattern returns a pattern of net/http as one of fiber.
func pattern(path string) string {
	segments := strings.Split(path, "/")
	for i, segment := range segments {
		if name, wild := strings.CutPrefix(segment, "{"); strings.HasSuffix(segment, "...}") {
			segments[i] = "*"
		} else if wild {
			segments[i] = ":" + strings.TrimSuffix(name, "}")
		}
	}
	return strings.Join(segments, "/")
}

// handling is what the app does with a call.
type handling struct {
	c   fiber.Ctx
	err *error // what the handler returns
}

func (h handling) Context() context.Context    { return h.c.Context() }
func (h handling) Header(name string) string   { return h.c.Get(name) }
func (h handling) Cookie(name string) string   { return h.c.Cookies(name) }
func (h handling) Query(name string) string    { return h.c.Query(name) }
func (h handling) Flush()                      {} // LeavingCallers alone need it
func (h handling) Text(text string)            { *h.err = h.c.SendString(text) }
func (h handling) Reply(status int)            { *h.err = h.c.Status(status).SendString("replied") }
func (h handling) OwnLimits(guard *core.Guard) { *h.err = fiber3limit.OwnLimits(guard)(h.c) }
func (h handling) Allow(check *core.Check, subject string) bool {
	return fiber3limit.Allow(h.c, check, subject)
}
