package limittest_test

import (
	"context"
	"io"
	"log"
	"net"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/core/limittest"
)

func TestToy(t *testing.T) { limittest.Run(t, limittest.Adapter{Serve: serve}) }

// serve serves an app with toy, through the adapter of the example.
func serve(_ testing.TB, l net.Listener, app limittest.App) (stop func()) {
	router := newToy()
	router.Use(recovered, func(c *Ctx) {
		for name, value := range app.Values {
			c.Values[name] = value
		}
		if app.Before != nil {
			c.Request = c.Request.WithContext(app.Before(c.Request.Context()))
		}
		c.Next()
	})
	router.Use(limits(app.Limiter, app.Use)...)
	for _, route := range app.Routes {
		handlers := limits(app.Limiter, route.Limits)
		if route.Recovers {
			handlers = append(handlers, recovered)
		}
		handlers = append(handlers, func(c *Ctx) { route.Serve(handling{c}) })
		method := map[string]string{"": "GET ", "*": ""}
		if _, special := method[route.Method]; !special {
			method[route.Method] = route.Method + " "
		}
		router.Handle(method[route.Method]+route.Path, handlers...)
	}
	server := &http.Server{Handler: router, ErrorLog: log.New(io.Discard, "", 0)}
	go func() { _ = server.Serve(l) }()
	return func() { _ = server.Close() }
}

func limits(limiter *core.Limiter, lists [][]core.Rule) (middlewares []Handler) {
	for _, rules := range lists {
		middlewares = append(middlewares, New(limiter, rules...))
	}
	return middlewares
}

// recovered is the framework's recovery.
func recovered(c *Ctx) {
	outer := c.Writer
	defer func() {
		if recover() != nil {
			outer.WriteHeader(http.StatusInternalServerError)
		}
	}()
	c.Next()
}

type handling struct{ c *Ctx }

func (h handling) Context() context.Context { return h.c.Request.Context() }
func (h handling) Reply(status int)         { http.Error(h.c.Writer, "replied", status) }
func (h handling) Text(text string) {
	h.c.Writer.Header().Set("Content-Length", strconv.Itoa(len(text)))
	_, _ = io.Copy(h.c.Writer, strings.NewReader(text))
}

func (h handling) Allow(check *core.Check, subject string) bool { return Allow(h.c, check, subject) }
