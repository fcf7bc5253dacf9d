// Command chi is a service on chi with limited routes. Package example lists the environment
// variables that it reads.
package main

import (
	"fmt"
	"log"
	"net/http"
	"time"

	"github.com/go-chi/chi/v5"
	"github.com/go-chi/chi/v5/middleware"

	"github.com/accesslimit/accesslimit/chilimit"
	"github.com/accesslimit/accesslimit/core"
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
	r := chi.NewRouter()

	// GetHead changes the route of a call, so it is in front of the limits, which then count a HEAD
	// as the route's GET.
	r.Use(middleware.GetHead)
	r.Use(chilimit.New(limiter,
		core.Rule{
			Name: "api", Seconds: 1, MaxCount: 100, Except: []string{"/healthz", "/operator/**", "/console/**"},
		},
		core.Rule{
			Seconds: 10, MaxCount: 10,
			Paths: []string{"/limit/**"}, Except: []string{"/limit/free/**"},
		},
	))

	r.Get("/healthz", example.Health(limiter).ServeHTTP)
	r.Get("/", say("hello"))
	r.Route("/limit", func(r chi.Router) {
		r.Get("/anything", say("limited by its path"))
		r.Get("/free/anything", say("excepted"))
	})

	// A rule without a name counts its route, /users/{id}: /users/1 and /users/2 have one counter.
	r.With(chilimit.New(limiter, core.Rule{Seconds: 10, MaxCount: 3})).Get("/users/{id}", say("a user"))

	burst := core.Rule{Limit: core.PerSecond(5).Bucket(10)}
	r.With(chilimit.New(limiter, burst)).Get("/burst", say("burst"))
	fixed := core.Rule{Limit: core.Per(4, 5*time.Second).Fixed()}
	r.With(chilimit.New(limiter, fixed)).Get("/fixed", say("fixed"))
	replies := core.Rule{Seconds: 60, MaxCount: 5, NeedLogin: true}
	r.With(chilimit.New(limiter, replies)).Post("/reply", reply)
	r.Handle("/operator/*", example.Operator(limiter))
	r.Handle("/console/*", example.Console(limiter))
	return r
}

func say(text string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, text) }
}

// reply knows its user: the rule before it has asked who is calling.
func reply(w http.ResponseWriter, r *http.Request) {
	user, _ := core.UserFrom(r.Context())
	fmt.Fprintln(w, user, "has replied")
}
