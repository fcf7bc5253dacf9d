package faults_test

import (
	"context"
	"io"
	"log"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/gin-gonic/gin"
	"github.com/gofiber/fiber/v2"
	"github.com/labstack/echo/v4"

	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/core/adaptertest"
	"github.com/accesslimit/accesslimit/echolimit"
	"github.com/accesslimit/accesslimit/fiberlimit"
	"github.com/accesslimit/accesslimit/ginlimit"
	"github.com/accesslimit/accesslimit/nethttplimit"
)

// framework is one of the five frameworks, with the function that serves an app with it.
type framework struct {
	name string
	adaptertest.Adapter
}

// unnoticed reports whether a handler's context does not end when its caller leaves.
func (f framework) unnoticed() bool { return f.Cannot[adaptertest.LeavingCallers] != "" }

var fiberCannot = map[adaptertest.Feature]string{
	adaptertest.RouteInUse:     "fiber runs what Use was given before it looks for the route",
	adaptertest.LeavingCallers: "fasthttp does not read from the connection while a handler runs",
}

// usual is the number of bytes of headers that servers usually accept.
const usual = 16 << 10

// serveFunc is adaptertest.Adapter.Serve.
type serveFunc = func(testing.TB, net.Listener, adaptertest.App) (stop func())

// frameworks returns all five, with servers that accept this many bytes of headers.
func frameworks(room int) []framework {
	gin.SetMode(gin.TestMode)
	return []framework{
		{"gin", adaptertest.Adapter{Serve: overHTTP(ginHandler, room)}},
		{"echo", adaptertest.Adapter{Serve: overHTTP(echoHandler, room)}},
		{"fiber", adaptertest.Adapter{Serve: serveFiber(room), Cannot: fiberCannot}},
		{"net/http", adaptertest.Adapter{Serve: overHTTP(muxHandler, room)}},
		{"gRPC", adaptertest.Adapter{Serve: serveGRPC(room), Connect: connectGRPC, RPC: true}},
	}
}

// overHTTP serves a handler by net/http's server, over HTTP/1.1 and HTTP/2.
func overHTTP(handler func(adaptertest.App) http.Handler, room int) serveFunc {
	return func(_ testing.TB, l net.Listener, app adaptertest.App) (stop func()) {
		server := &http.Server{Handler: handler(app), MaxHeaderBytes: room, Protocols: new(http.Protocols), ErrorLog: log.New(io.Discard, "", 0)}
		server.Protocols.SetHTTP1(true)
		server.Protocols.SetUnencryptedHTTP2(true)
		go func() { _ = server.Serve(l) }()
		return func() { _ = server.Close() }
	}
}

func ginHandler(app adaptertest.App) http.Handler {
	router := gin.New()
	router.Use(func(c *gin.Context) { c.Request = c.Request.WithContext(app.Enter(c.Request.Context())) })
	for _, rules := range app.Use {
		router.Use(ginlimit.New(app.Limiter, rules...))
	}
	for _, route := range app.Routes {
		var limits []gin.HandlerFunc
		for _, guard := range route.Guards {
			limits = append(limits, ginlimit.With(guard))
		}
		router.Match(methodsOf(route), pathFor(route, "*rest"), append(limits, func(c *gin.Context) {
			route.Serve(handling{nil, c.Request.Context(), c.Writer, c.Status, func(check *core.Check, subject string) bool {
				return ginlimit.Allow(c, check, subject)
			}})
		})...)
	}
	return router
}

func echoHandler(app adaptertest.App) http.Handler {
	e := echo.New()
	e.Logger.SetOutput(io.Discard)
	e.Use(func(next echo.HandlerFunc) echo.HandlerFunc {
		return func(c echo.Context) error {
			c.SetRequest(c.Request().WithContext(app.Enter(c.Request().Context())))
			return next(c)
		}
	})
	for _, rules := range app.Use {
		e.Use(echolimit.New(app.Limiter, rules...))
	}
	for _, route := range app.Routes {
		var limits []echo.MiddlewareFunc
		for _, guard := range route.Guards {
			limits = append(limits, echolimit.With(guard))
		}
		e.Match(methodsOf(route), pathFor(route, "*"), func(c echo.Context) error {
			route.Serve(handling{nil, c.Request().Context(), c.Response(), c.Response().WriteHeader, func(check *core.Check, subject string) bool {
				return echolimit.Allow(c, check, subject)
			}})
			return nil
		}, limits...)
	}
	return e
}

func muxHandler(app adaptertest.App) http.Handler {
	mux := http.NewServeMux()
	for _, route := range app.Routes {
		var handler http.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			route.Serve(handling{nil, r.Context(), w, w.WriteHeader, func(check *core.Check, subject string) bool {
				return nethttplimit.Allow(w, r, check, subject)
			}})
		})
		for _, guard := range slices.Backward(route.Guards) {
			handler = nethttplimit.With(guard)(handler)
		}
		mux.Handle(patternOf(route), handler)
	}
	var use http.Handler = mux
	for _, rules := range slices.Backward(app.Use) {
		use = nethttplimit.New(app.Limiter, rules...)(use)
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { use.ServeHTTP(w, r.WithContext(app.Enter(r.Context()))) })
}

func serveFiber(room int) serveFunc {
	return func(_ testing.TB, l net.Listener, app adaptertest.App) (stop func()) {
		router := fiberApp(app, fiber.Config{DisableStartupMessage: true, ReadBufferSize: room})
		go func() { _ = router.Listener(l) }()
		return func() { _ = l.Close() }
	}
}

func fiberApp(app adaptertest.App, config fiber.Config) *fiber.App {
	router := fiber.New(config)
	router.Use(func(c *fiber.Ctx) error {
		c.SetUserContext(app.Enter(c.UserContext()))
		return c.Next()
	})
	for _, rules := range app.Use {
		router.Use(fiberlimit.New(app.Limiter, rules...))
	}
	for _, route := range app.Routes {
		var handlers []fiber.Handler
		for _, guard := range route.Guards {
			handlers = append(handlers, fiberlimit.With(guard))
		}
		handlers = append(handlers, func(c *fiber.Ctx) error {
			status := func(status int) { c.Status(status) }
			route.Serve(handling{nil, c.UserContext(), c, status, func(check *core.Check, subject string) bool {
				return fiberlimit.Allow(c, check, subject)
			}})
			return nil
		})
		for _, method := range methodsOf(route) {
			router.Add(method, pathFor(route, "*"), handlers...)
		}
	}
	return router
}

// methodsOf returns a route's methods.
func methodsOf(route adaptertest.Route) []string {
	switch route.Method {
	case "":
		return []string{"GET"}
	case "*":
		return []string{"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "CONNECT"}
	default:
		return []string{route.Method}
	}
}

// patternOf returns a route's pattern for a mux.
func patternOf(route adaptertest.Route) string {
	if route.Method == "*" {
		return route.Path
	}
	return methodsOf(route)[0] + " " + route.Path
}

// pathFor returns a route's path in the spelling of gin, echo and fiber, which differ only in how
// they write {rest...}.
func pathFor(route adaptertest.Route, rest string) string {
	return strings.NewReplacer("{rest...}", rest, "{", ":", "}", "").Replace(route.Path)
}

// handling is a call in a handler that writes its reply as bytes. An RPC has neither status nor
// allow. No route here reads its call, flushes, or shows limits.
type handling struct {
	adaptertest.Handling
	ctx    context.Context
	reply  io.Writer
	status func(status int)
	allow  func(check *core.Check, subject string) bool
}

// Context implements adaptertest.Handling.
func (h handling) Context() context.Context { return h.ctx }

// Allow implements adaptertest.Handling.
func (h handling) Allow(check *core.Check, subject string) bool { return h.allow(check, subject) }

// Text implements adaptertest.Handling.
func (h handling) Text(text string) { _, _ = io.WriteString(h.reply, text) }

// Reply implements adaptertest.Handling.
func (h handling) Reply(status int) { h.status(status) }
