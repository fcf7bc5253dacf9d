package frameworks

import (
	"context"
	"io"
	"net/http"
	"strconv"

	"github.com/gin-gonic/gin"

	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/core/adaptertest"
	"github.com/accesslimit/accesslimit/ginlimit"
)

// Gin returns an app made with gin, whose routing configure may change.
func Gin(app adaptertest.App, configure func(*gin.Engine)) *gin.Engine {
	router := gin.New()
	configure(router)
	router.Use(gin.RecoveryWithWriter(io.Discard), beforeGin(app))
	for _, rules := range app.Use {
		router.Use(ginlimit.New(app.Limiter, rules...))
	}
	for _, route := range app.Routes {
		path := pathFor(route, "*rest")
		var handlers []gin.HandlerFunc
		for _, guard := range route.Guards {
			handlers = append(handlers, ginlimit.With(guard))
		}
		if route.Recovers {
			handlers = append(handlers, gin.RecoveryWithWriter(io.Discard))
		}
		handlers = append(handlers, func(c *gin.Context) { route.Serve(GinHandling{c}) })
		switch route.Method {
		case "":
			router.GET(path, handlers...)
		case "*":
			router.Any(path, handlers...)
		default:
			router.Handle(route.Method, path, handlers...)
		}
	}
	return router
}

func beforeGin(app adaptertest.App) gin.HandlerFunc {
	return func(c *gin.Context) {
		for name, value := range app.Values {
			c.Set(name, value)
		}
		if app.Before != nil {
			c.Request = c.Request.WithContext(app.Before(c.Request.Context()))
		}
	}
}

// GinHandling is what a handler of gin can do. It implements adaptertest.Handling.
type GinHandling struct{ C *gin.Context }

func (h GinHandling) Context() context.Context  { return h.C.Request.Context() }
func (h GinHandling) Header(name string) string { return h.C.GetHeader(name) }
func (h GinHandling) Query(name string) string  { return h.C.Query(name) }
func (h GinHandling) Flush()                    { h.C.Writer.Flush() }
func (h GinHandling) Cookie(name string) string {
	value, _ := h.C.Cookie(name)
	return value
}
func (h GinHandling) Text(text string) {
	h.C.Header("Content-Length", strconv.Itoa(len(text)))
	h.C.String(http.StatusOK, "%s", text)
}
func (h GinHandling) Reply(status int) { h.C.String(status, "replied") }
func (h GinHandling) Allow(check *core.Check, subject string) bool {
	return ginlimit.Allow(h.C, check, subject)
}
func (h GinHandling) OwnLimits(guard *core.Guard) { ginlimit.OwnLimits(guard)(h.C) }
