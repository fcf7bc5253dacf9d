package chilimit_test

import (
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/go-chi/chi/v5"
	"github.com/go-chi/chi/v5/middleware"

	"github.com/accesslimit/accesslimit/chilimit"
	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/core/adaptertest"
)

type middlewares []func(http.Handler) http.Handler

func init() {
	for _, method := range []string{"BREW", "ONE", "TWO", "THREE"} { // chi serves only methods that it knows
		chi.RegisterMethod(method)
	}
}

// serving returns the Serve of an adaptertest.Adapter for a router with these middlewares in front,
// which cut trailing slashes, and the routes in routers mounted so deep.
func serving(front middlewares, depth int) func(testing.TB, net.Listener, adaptertest.App) func() {
	return func(_ testing.TB, l net.Listener, app adaptertest.App) (stop func()) {
		router := chi.NewRouter()
		router.Use(quiet, middleware.Recoverer, entered(app))
		router.Use(front...)
		for _, rules := range app.Use {
			router.Use(chilimit.New(app.Limiter, rules...))
		}
		routes := chi.Router(router)
		for range depth {
			routes = routes.Route("/", func(chi.Router) {})
		}
		for _, route := range app.Routes {
			if len(front) > 0 {
				route.Path = strings.TrimSuffix(route.Path, "/") // no call comes with the slash
			}
			add(routes, route)
		}
		return adaptertest.ServeHTTP(l, router)
	}
}

// add adds a route with its limits.
func add(router chi.Router, route adaptertest.Route) {
	var around middlewares
	for _, guard := range route.Guards {
		around = append(around, chilimit.With(guard))
	}
	if route.Recovers {
		around = append(around, middleware.Recoverer)
	}
	path, handler := route.Path, func(w http.ResponseWriter, r *http.Request) {
		route.Serve(handling{adaptertest.HTTPHandling{Writer: w, Request: r}})
	}
	if before, deep := strings.CutSuffix(path, "{rest...}"); deep {
		path = before + "*"
	}
	switch route.Method {
	case "*":
		router.With(around...).HandleFunc(path, handler)
	case "":
		router.With(around...).Get(path, handler)
	default:
		router.With(around...).MethodFunc(route.Method, path, handler)
	}
}

// entered puts what the app has in front into the context.
func entered(app adaptertest.App) func(http.Handler) http.Handler {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			next.ServeHTTP(w, r.WithContext(app.Enter(r.Context())))
		})
	}
}

// quiet keeps chi's Recoverer from printing.
func quiet(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		next.ServeHTTP(w, middleware.WithLogEntry(r, silent{}))
	})
}

type silent struct{}

func (silent) Write(int, int, http.Header, time.Duration, any) {}
func (silent) Panic(any, []byte)                               {}

// handling is what the app does with a call.
type handling struct{ adaptertest.HTTPHandling }

func (h handling) Allow(check *core.Check, subject string) bool {
	return chilimit.Allow(h.Writer, h.Request, check, subject)
}
func (h handling) OwnLimits(guard *core.Guard) {
	chilimit.OwnLimits(guard).ServeHTTP(h.Writer, h.Request)
}
