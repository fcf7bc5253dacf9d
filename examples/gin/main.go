// Command gin is a gin service with limited routes. Package example lists the environment
// variables that it reads.
package main

import (
	"log"
	"net/http"
	"time"

	"github.com/gin-gonic/gin"

	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/examples/internal/example"
	"github.com/accesslimit/accesslimit/ginlimit"
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
	gin.SetMode(gin.ReleaseMode)
	router := gin.New()
	router.HandleMethodNotAllowed = true
	router.RedirectTrailingSlash = false // gin would redirect before any middleware, uncounted

	// gin's Use covers only the routes that are added after it.
	router.Use(ginlimit.New(limiter,
		core.Rule{
			Name: "api", Seconds: 1, MaxCount: 100, Except: []string{"/healthz", "/operator/**", "/console/**"},
		},
		core.Rule{
			Seconds: 10, MaxCount: 10,
			Paths: []string{"/limit/**"}, Except: []string{"/limit/free/**"},
		},
	))

	// gin answers a HEAD only where it is registered. The limits count it as the route's GET.
	get := func(path string, handlers ...gin.HandlerFunc) {
		router.Match([]string{http.MethodGet, http.MethodHead}, path, handlers...)
	}
	get("/healthz", gin.WrapH(example.Health(limiter)))
	get("/", say("hello"))
	get("/limit/anything", say("limited by its path"))
	get("/limit/free/anything", say("excepted"))

	// A rule without a name counts its route, /users/:id: /users/1 and /users/2 have one counter.
	get("/users/:id", ginlimit.New(limiter, core.Rule{Seconds: 10, MaxCount: 3}), say("a user"))

	burst := core.Rule{Limit: core.PerSecond(5).Bucket(10)}
	get("/burst", ginlimit.New(limiter, burst), say("burst"))
	fixed := core.Rule{Limit: core.Per(4, 5*time.Second).Fixed()}
	get("/fixed", ginlimit.New(limiter, fixed), say("fixed"))
	replies := core.Rule{Seconds: 60, MaxCount: 5, NeedLogin: true}
	router.POST("/reply", ginlimit.New(limiter, replies), reply)
	router.Any("/operator/*question", gin.WrapH(example.Operator(limiter)))
	router.Any("/console/*page", gin.WrapH(example.Console(limiter)))
	return router
}

func say(text string) gin.HandlerFunc {
	return func(c *gin.Context) { c.String(http.StatusOK, text+"\n") }
}

// reply knows its user: the rule before it has asked who is calling.
func reply(c *gin.Context) {
	user, _ := core.UserFrom(c.Request.Context())
	c.String(http.StatusOK, "%s has replied\n", user)
}
