package ginlimit_test

import (
	"context"
	"io"
	"log"
	"net"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"github.com/gin-gonic/gin"

	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/core/adaptertest"
	"github.com/accesslimit/accesslimit/ginlimit"
)

func TestAdapter(t *testing.T) {
	gin.SetMode(gin.TestMode)
	adaptertest.Run(t, adaptertest.Adapter{Serve: serve(func(*gin.Engine) {}), Endings: endings})
}

// TestRoutingOptions runs the adapter's tests while gin routes by other forms of the path.
func TestRoutingOptions(t *testing.T) {
	gin.SetMode(gin.TestMode)
	adaptertest.RunPaths(t, adaptertest.Adapter{Serve: serve(func(e *gin.Engine) { e.UseRawPath, e.RemoveExtraSlash = true, true })})
}

func serve(configure func(*gin.Engine)) func(testing.TB, net.Listener, adaptertest.App) (stop func()) {
	return func(_ testing.TB, l net.Listener, app adaptertest.App) (stop func()) {
		router := gin.New()
		configure(router)
		router.Use(gin.RecoveryWithWriter(io.Discard), before(app))
		router.Use(limits(app.Limiter, app.Use)...)
		for _, route := range app.Routes {
			path := strings.NewReplacer("{rest...}", "*rest", "{", ":", "}", "").Replace(route.Path)
			handlers := limits(app.Limiter, route.Limits)
			for _, guard := range route.Guards {
				handlers = append(handlers, ginlimit.With(guard))
			}
			if route.Recovers {
				handlers = append(handlers, gin.RecoveryWithWriter(io.Discard))
			}
			handlers = append(handlers, func(c *gin.Context) { route.Serve(handling{c, app.Limiter}) })
			switch route.Method {
			case "":
				router.GET(path, handlers...)
			case "*":
				router.Any(path, handlers...)
			default:
				router.Handle(route.Method, path, handlers...)
			}
		}
		// The log is discarded, because gin 1.9.1 panics where RedirectFixedPath looks for some
		// paths.
		server := &http.Server{Handler: router, ErrorLog: log.New(io.Discard, "", 0)}
		go func() { _ = server.Serve(l) }()
		return func() { _ = server.Close() }
	}
}

func limits(limiter *core.Limiter, lists [][]core.Rule) (middlewares []gin.HandlerFunc) {
	for _, rules := range lists {
		middlewares = append(middlewares, ginlimit.New(limiter, rules...))
	}
	return middlewares
}

func before(app adaptertest.App) gin.HandlerFunc {
	return func(c *gin.Context) {
		for name, value := range app.Values {
			c.Set(name, value)
		}
		if app.Before != nil {
			c.Request = c.Request.WithContext(app.Before(c.Request.Context()))
		}
	}
}

type handling struct {
	c       *gin.Context
	limiter *core.Limiter
}

func (h handling) Context() context.Context  { return h.c.Request.Context() }
func (h handling) Header(name string) string { return h.c.GetHeader(name) }
func (h handling) Query(name string) string  { return h.c.Query(name) }
func (h handling) Flush()                    { h.c.Writer.Flush() }
func (h handling) Cookie(name string) string {
	value, _ := h.c.Cookie(name)
	return value
}
func (h handling) Text(text string) {
	h.c.Header("Content-Length", strconv.Itoa(len(text)))
	h.c.String(http.StatusOK, "%s", text)
}
func (h handling) Reply(status int) { h.c.String(status, "replied") }
func (h handling) Allow(check *core.Check, subject string) bool {
	return ginlimit.Allow(h.c, check, subject)
}
func (h handling) OwnLimits(guard *core.Guard) { ginlimit.OwnLimits(guard)(h.c) }
