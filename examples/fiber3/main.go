// Command fiber3 is a service on fiber v3 with limited routes. Package example lists the environment
// variables that it reads.
package main

import (
	"context"
	"log"
	"net"
	"net/http"
	"time"

	"github.com/gofiber/fiber/v3"
	"github.com/gofiber/fiber/v3/middleware/adaptor"

	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/examples/internal/example"
	"github.com/accesslimit/accesslimit/fiber3limit"
)

func main() {
	if err := run(); err != nil {
		log.Fatal(err)
	}
}

func run() error {
	limiter, err := example.Limiter()
	if err != nil {
		return err
	}
	defer limiter.Close()
	app := routes(limiter)
	serve := func(l net.Listener) error { return app.Listener(l, fiber.ListenConfig{DisableStartupMessage: true}) }
	return example.Serve(example.Routes, serve, app.ShutdownWithContext)
}

func routes(limiter *core.Limiter) *fiber.App {
	app := fiber.New(fiber.Config{
		ReadTimeout:    5 * time.Second,
		ReadBufferSize: 32 << 10, // for headers as large as net/http accepts
		IdleTimeout:    time.Minute,
	})

	app.Use(drain)
	// In Use fiber does not know the route yet, so these rules need a Name or Paths.
	app.Use("*", fiber3limit.New(limiter,
		core.Rule{
			Name: "api", Seconds: 1, MaxCount: 100, Except: []string{"/healthz", "/operator/**", "/console/**"},
		},
		core.Rule{
			Seconds: 10, MaxCount: 10,
			Paths: []string{"/limit/**"}, Except: []string{"/limit/free/**"},
		},
	))

	app.Get("/healthz", wrap(example.Health(limiter)))
	app.Get("/", say("hello"))
	app.Get("/limit/anything", say("limited by its path"))
	app.Get("/limit/free/anything", say("excepted"))

	// A rule without a name counts its route, /users/:id: /users/1 and /users/2 have one counter.
	app.Get("/users/:id", fiber3limit.New(limiter, core.Rule{Seconds: 10, MaxCount: 3}), say("a user"))

	burst := core.Rule{Limit: core.PerSecond(5).Bucket(10)}
	app.Get("/burst", fiber3limit.New(limiter, burst), say("burst"))
	fixed := core.Rule{Limit: core.Per(4, 5*time.Second).Fixed()}
	app.Get("/fixed", fiber3limit.New(limiter, fixed), say("fixed"))
	replies := core.Rule{Seconds: 60, MaxCount: 5, NeedLogin: true}
	app.Post("/reply", fiber3limit.New(limiter, replies), reply)
	app.All("/operator/*", wrap(example.Operator(limiter)))
	app.All("/console/*", adaptor.HTTPHandler(example.Console(limiter)))
	return app
}

// drain closes connections after their call, and fails health checks, while the service ends.
func drain(c fiber.Ctx) error {
	if example.Draining() {
		c.RequestCtx().SetConnectionClose()
		if c.Path() == "/healthz" {
			return c.Status(fiber.StatusServiceUnavailable).SendString("draining\n")
		}
	}
	return c.Next()
}

// wrap returns a handler of net/http as one of fiber. Its context never ends: that of fasthttp, which
// ends when the server does, is not safe to watch at that time.
func wrap(handler http.Handler) fiber.Handler {
	return adaptor.HTTPHandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		handler.ServeHTTP(w, r.WithContext(context.WithoutCancel(r.Context())))
	})
}

func say(text string) fiber.Handler {
	return func(c fiber.Ctx) error { return c.SendString(text + "\n") }
}

// reply knows its user: the rule before it has asked who is calling.
func reply(c fiber.Ctx) error {
	user, _ := core.UserFrom(c.Context())
	return c.SendString(user + " has replied\n")
}
