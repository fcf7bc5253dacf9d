// Command nethttp is a net/http service with limited routes. Package example lists the environment
// variables that it reads.
package main

import (
	"fmt"
	"log"
	"net/http"
	"time"

	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/examples/internal/example"
	"github.com/accesslimit/accesslimit/nethttplimit"
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
	mux := http.NewServeMux()
	mux.Handle("GET /healthz", example.Health(limiter))
	mux.Handle("GET /{$}", say("hello"))
	mux.Handle("GET /limit/anything", say("limited by its path"))
	mux.Handle("GET /limit/free/anything", say("excepted"))

	// A rule without a name counts its route, /users/{id}: /users/1 and /users/2 have one counter.
	users := core.Rule{Seconds: 10, MaxCount: 3}
	mux.Handle("GET /users/{id}", nethttplimit.New(limiter, users)(say("a user")))

	burst := core.Rule{Limit: core.PerSecond(5).Bucket(10)}
	mux.Handle("GET /burst", nethttplimit.New(limiter, burst)(say("burst")))
	fixed := core.Rule{Limit: core.Per(4, 5*time.Second).Fixed()}
	mux.Handle("GET /fixed", nethttplimit.New(limiter, fixed)(say("fixed")))
	replies := core.Rule{Seconds: 60, MaxCount: 5, NeedLogin: true}
	mux.Handle("POST /reply", nethttplimit.New(limiter, replies)(http.HandlerFunc(reply)))
	mux.Handle("/operator/", example.Operator(limiter))
	mux.Handle("/console/", example.Console(limiter))

	// Around the mux the rules hold for every route, those that do not exist included.
	everywhere := nethttplimit.New(limiter,
		core.Rule{
			Name: "api", Seconds: 1, MaxCount: 100, Except: []string{"/healthz", "/operator/**", "/console/**"},
		},
		core.Rule{
			Seconds: 10, MaxCount: 10,
			Paths: []string{"/limit/**"}, Except: []string{"/limit/free/**"},
		},
	)
	return everywhere(mux)
}

func say(text string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, text) })
}

// reply knows its user: the rule before it has asked who is calling.
func reply(w http.ResponseWriter, r *http.Request) {
	user, _ := core.UserFrom(r.Context())
	fmt.Fprintln(w, user, "has replied")
}
