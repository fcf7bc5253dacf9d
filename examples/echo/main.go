// Command echo is an echo service with limited routes. Package example lists the environment
// variables that it reads.
package main

import (
	"log"
	"net/http"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/echolimit"
	"github.com/accesslimit/accesslimit/examples/internal/example"
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
	return example.ServeHTTP(routes(limiter))
}

func routes(limiter *core.Limiter) http.Handler {
	e := echo.New()

	// In Use, not in Pre: there echo does not know the route yet.
	e.Use(echolimit.New(limiter,
		core.Rule{
			Name: "api", Seconds: 1, MaxCount: 100, Except: []string{"/healthz", "/operator/**", "/console/**"},
		},
		core.Rule{
			Seconds: 10, MaxCount: 10,
			Paths: []string{"/limit/**"}, Except: []string{"/limit/free/**"},
		},
	))

	// echo answers a HEAD only where it is registered. The limits count it as the route's GET.
	get := func(path string, handler echo.HandlerFunc, middleware ...echo.MiddlewareFunc) {
		e.Match([]string{http.MethodGet, http.MethodHead}, path, handler, middleware...)
	}
	get("/healthz", echo.WrapHandler(example.Health(limiter)))
	get("/", say("hello"))
	get("/limit/anything", say("limited by its path"))
	get("/limit/free/anything", say("excepted"))

	// A rule without a name counts its route, /users/:id: /users/1 and /users/2 have one counter.
	get("/users/:id", say("a user"), echolimit.New(limiter, core.Rule{Seconds: 10, MaxCount: 3}))

	burst := core.Rule{Limit: core.PerSecond(5).Bucket(10)}
	get("/burst", say("burst"), echolimit.New(limiter, burst))
	fixed := core.Rule{Limit: core.Per(4, 5*time.Second).Fixed()}
	get("/fixed", say("fixed"), echolimit.New(limiter, fixed))
	replies := core.Rule{Seconds: 60, MaxCount: 5, NeedLogin: true}
	e.POST("/reply", reply, echolimit.New(limiter, replies))
	e.Any("/operator/*", echo.WrapHandler(example.Operator(limiter)))
	e.Any("/console/*", echo.WrapHandler(example.Console(limiter)))
	return e
}

func say(text string) echo.HandlerFunc {
	return func(c echo.Context) error { return c.String(http.StatusOK, text+"\n") }
}

// reply knows its user: the rule before it has asked who is calling.
func reply(c echo.Context) error {
	user, _ := core.UserFrom(c.Request().Context())
	return c.String(http.StatusOK, user+" has replied\n")
}
