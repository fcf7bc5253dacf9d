package adaptertest_test

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/core/adapter"
	"github.com/accesslimit/accesslimit/core/adaptertest"
)

// An adapter for toy, a made-up framework, with what its test needs. The framework is at the end of
// the file.
func Example_adapter() {
	limiter, err := core.New(core.Options{})
	if err != nil {
		panic(err)
	}
	defer limiter.Close()
	router := newToy()
	router.Handle("GET /users/{id}", New(limiter, core.Rule{Seconds: 60, MaxCount: 2}), func(c *Ctx) {
		fmt.Fprintf(c.Writer, "user %s", c.Request.PathValue("id"))
	})
	for _, path := range []string{"/users/1", "/users/2", "/users/3"} {
		w := httptest.NewRecorder()
		router.ServeHTTP(w, httptest.NewRequest("GET", path, nil))
		fmt.Println(w.Code, w.Header().Get("RateLimit-Policy"))
	}
	// Output:
	// 200 "GET /users/{id}";q=2;w=60
	// 200 "GET /users/{id}";q=2;w=60
	// 429 "GET /users/{id}";q=2;w=60
}

// New returns a middleware for one route or the whole router, which decides by these rules
// together. It panics with a *core.RuleError if a rule is wrong.
func New(limiter *core.Limiter, rules ...core.Rule) Handler {
	return With(limiter.MustGuard(rules...))
}

// With returns the middleware for a guard that was made before.
func With(guard *core.Guard) Handler {
	return func(c *Ctx) {
		answer := guard.Check(view{c})
		if !carryOut(c, answer) {
			return
		}
		if answer.Final() { // nothing is left to do after the handler
			c.Next()
			return
		}
		outer := c.Writer
		watched, response := answer.Watch(outer, c.Request)
		c.Writer = watched
		defer func() {
			c.Writer = outer
			response.Finish()
		}()
		answer.Run(func() (status int) {
			c.Next()
			return response.Status()
		})
	}
}

// Allow decides inside a handler, for a subject that only the handler knows; "" is each rule's own
// key. After false the refusal is written, and the handler returns.
func Allow(c *Ctx, check *core.Check, subject string) bool {
	return carryOut(c, check.Allow(view{c}, subject))
}

// OwnLimits returns a handler that shows callers their own limits.
func OwnLimits(guard *core.Guard) Handler {
	return func(c *Ctx) {
		own := guard.OwnLimits(view{c})
		own.SetHeader(c.Writer.Header())
		status, _, body := own.Reply()
		c.Writer.WriteHeader(status)
		_, _ = c.Writer.Write(body) // a caller who has left needs no answer
	}
}

// carryOut writes the refusal, if there is one, and reports whether the call goes on.
func carryOut(c *Ctx, answer core.Answer) (goOn bool) {
	if answer.Context != nil {
		c.Request = c.Request.WithContext(answer.Context)
	}
	if answer.Refusal == nil {
		return true
	}
	answer.Refusal.SetHeader(c.Writer.Header())
	c.Writer.WriteHeader(answer.Refusal.Status)
	_, _ = c.Writer.Write(answer.Refusal.Body) // a caller who has left needs no answer
	return false
}

// view implements adapter.View. It is one pointer wide, so passing it as an adapter.View allocates
// nothing.
type view struct{ c *Ctx }

func (v view) Context() context.Context             { return v.c.Request.Context() }
func (v view) Method() string                       { return v.c.Request.Method }
func (v view) Route() string                        { return v.c.Route }
func (v view) RemoteAddr() netip.Addr               { return adapter.PeerAddr(v.c.Request.RemoteAddr) }
func (v view) Host() string                         { return v.c.Request.Host }
func (v view) Header(name string) []string          { return v.c.Request.Header.Values(name) }
func (v view) Query(name string) string             { return v.c.Request.URL.Query().Get(name) }
func (v view) Param(name string) string             { return v.c.Request.PathValue(name) }
func (v view) Size() int64                          { return v.c.Request.ContentLength }
func (v view) ResponseHeader() adapter.HeaderWriter { return v.c.Writer.Header() }

// Path returns the undecoded path if the client's spelling differs, because the router tells /a%2Fb
// from /a/b.
func (v view) Path() string {
	if raw := v.c.Request.URL.RawPath; raw != "" {
		return raw
	}
	return v.c.Request.URL.Path
}

// Cookie implements adapter.View.
func (v view) Cookie(name string) string {
	cookie, err := v.c.Request.Cookie(name)
	if err != nil {
		return ""
	}
	return cookie.Value
}

// Value looks in the framework's own store first.
func (v view) Value(key any) any {
	if name, ok := key.(string); ok {
		if value, found := v.c.Values[name]; found {
			return value
		}
	}
	return v.c.Request.Context().Value(key)
}

// Here begins the adapter's test, which calls adaptertest.Run(t, adaptertest.Adapter{Serve: serve}).

// serve serves an app with the framework, through the adapter.
func serve(_ testing.TB, l net.Listener, app adaptertest.App) (stop func()) {
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
	for _, rules := range app.Use {
		router.Use(New(app.Limiter, rules...))
	}
	for _, route := range app.Routes {
		var handlers []Handler
		for _, guard := range route.Guards {
			handlers = append(handlers, With(guard))
		}
		if route.Recovers {
			handlers = append(handlers, recovered)
		}
		handlers = append(handlers, func(c *Ctx) { route.Serve(handling{adaptertest.HTTPHandling{Writer: c.Writer, Request: c.Request}, c}) })
		method := map[string]string{"": "GET ", "*": ""}
		if _, special := method[route.Method]; !special {
			method[route.Method] = route.Method + " "
		}
		router.Handle(method[route.Method]+route.Path, handlers...)
	}
	return adaptertest.ServeHTTP(l, router)
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

// handling is what the app does with a call.
type handling struct {
	adaptertest.HTTPHandling
	c *Ctx
}

func (h handling) Allow(check *core.Check, subject string) bool { return Allow(h.c, check, subject) }
func (h handling) OwnLimits(guard *core.Guard)                  { OwnLimits(guard)(h.c) }

// Here begins the framework.

// Handler is a handler or, if it calls Next, a middleware.
type Handler func(*Ctx)

// Ctx is a call on its way through its handlers.
type Ctx struct {
	Writer  http.ResponseWriter
	Request *http.Request
	Route   string         // the pattern of the route, without the method; "" if there is none
	Values  map[string]any // what middlewares leave for handlers
	rest    []Handler
}

// Next runs the next handler.
func (c *Ctx) Next() {
	if len(c.rest) > 0 {
		next := c.rest[0]
		c.rest = c.rest[1:]
		next(c)
	}
}

// toy is a router.
type toy struct {
	mux *http.ServeMux
	use []Handler
}

func newToy() *toy { return &toy{mux: http.NewServeMux()} }

// Use adds middlewares for every call.
func (t *toy) Use(middlewares ...Handler) { t.use = append(t.use, middlewares...) }

// Handle adds a route.
func (t *toy) Handle(pattern string, handlers ...Handler) {
	t.mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
		c := r.Context().Value(ctxKey{}).(*Ctx)
		c.Writer, c.Request, c.rest = w, r, handlers
		c.Next()
	})
}

type ctxKey struct{}

// ServeHTTP implements http.Handler.
func (t *toy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	_, pattern := t.mux.Handler(r)
	c := &Ctx{Writer: w, Values: make(map[string]any)}
	if slash := strings.IndexByte(pattern, '/'); slash >= 0 {
		c.Route = pattern[slash:]
	}
	c.Request = r.WithContext(context.WithValue(r.Context(), ctxKey{}, c))
	c.rest = append(slices.Clone(t.use), func(c *Ctx) { t.mux.ServeHTTP(c.Writer, c.Request) })
	c.Next()
}
