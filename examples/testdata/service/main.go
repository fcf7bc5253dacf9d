// A service that uses ginlimit, and nothing of core/operate. It runs a template, because then the
// linker keeps every exported method that reflection could find.
package main

import (
	"html/template"
	"net/http"
	"os"

	"github.com/gin-gonic/gin"
	"github.com/redis/go-redis/v9"

	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/ginlimit"
)

func main() {
	limiter, err := core.New(core.Options{Redis: redis.NewClient(&redis.Options{Addr: os.Getenv("REDIS")})})
	if err != nil {
		panic(err)
	}
	defer limiter.Close()
	page := template.Must(template.New("page").Parse("{{.Header.Get `Host`}}"))
	router := gin.New()
	router.Use(ginlimit.New(limiter, core.Rule{Name: "api", Seconds: 1, MaxCount: 100}))
	router.GET("/", func(c *gin.Context) { _ = page.Execute(c.Writer, c.Request) })
	panic(http.ListenAndServe(os.Getenv("ADDR"), router))
}
