package nethttplimit_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/internal/limitertest"
	"github.com/accesslimit/accesslimit/internal/logtest"
	"github.com/accesslimit/accesslimit/nethttplimit"
)

// TestOuterMiddlewareStillSeesPattern checks that a middleware around the limiter, such as one for
// metrics, still sees the route when Expose gives the handler another *http.Request.
func TestOuterMiddlewareStillSeesPattern(t *testing.T) {
	limiter := limitertest.New(t, core.Options{Expose: true})
	mux := http.NewServeMux()
	mux.HandleFunc("GET /users/{id}", func(http.ResponseWriter, *http.Request) {})
	limited := nethttplimit.New(limiter, core.Rule{Seconds: 60})(mux)
	r := httptest.NewRequest("GET", "/users/7", nil)
	w := httptest.NewRecorder()
	limited.ServeHTTP(w, r)
	if r.Pattern != "GET /users/{id}" {
		t.Errorf("the pattern outside is %q", r.Pattern)
	}
	if entry := w.Header().Get("RateLimit"); entry != `"GET /users/{id}";r=4;t=62` && entry != `"GET /users/{id}";r=4;t=61` {
		t.Errorf("RateLimit is %q, want the route's own", entry)
	}
}

// TestRouteHasNoHost checks that a pattern's host is no part of the route.
func TestRouteHasNoHost(t *testing.T) {
	limiter := limitertest.New(t, core.Options{})
	mux := http.NewServeMux()
	limit := nethttplimit.New(limiter, core.Rule{Seconds: 600, MaxCount: 1})
	ok := limit(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	mux.Handle("GET one.test/shop", ok)
	mux.Handle("two.test/shop", ok)
	for i, host := range []string{"one.test", "two.test"} {
		r := httptest.NewRequest("GET", "http://"+host+"/shop", nil)
		w := httptest.NewRecorder()
		mux.ServeHTTP(w, r)
		if want := []int{200, 429}[i]; w.Code != want {
			t.Errorf("%s: status %d, want %d", host, w.Code, want)
		}
	}
}

// TestNestedMuxProvidesItsRoutes checks that a mux inside another one provides its own routes.
func TestNestedMuxProvidesItsRoutes(t *testing.T) {
	limiter := limitertest.New(t, core.Options{})
	inner := http.NewServeMux()
	inner.HandleFunc("GET /api/a", func(http.ResponseWriter, *http.Request) {})
	inner.HandleFunc("GET /api/free", func(http.ResponseWriter, *http.Request) {})
	outer := http.NewServeMux()
	outer.Handle("/api/", nethttplimit.New(limiter, core.Rule{Name: "api", Seconds: 600, MaxCount: 1, Except: []string{"/api/free"}})(inner))
	for _, call := range []struct {
		path   string
		status int
	}{{"/api/a", 200}, {"/api/a", 429}, {"/api/free", 200}, {"/api/free", 200}} {
		w := httptest.NewRecorder()
		outer.ServeHTTP(w, httptest.NewRequest("GET", call.path, nil))
		if w.Code != call.status {
			t.Errorf("GET %s: status %d, want %d", call.path, w.Code, call.status)
		}
	}
}

// TestWarnsBeforeRouting checks that an unnamed rule causes a warning if the route is not known
// yet, as in chi's Use, and none if there is no route.
func TestWarnsBeforeRouting(t *testing.T) {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /shop", func(http.ResponseWriter, *http.Request) {})
	for name, test := range map[string]struct {
		next  http.Handler
		warns bool
	}{
		"around a mux":            {mux, false},
		"around another router":   {http.HandlerFunc(mux.ServeHTTP), true},
		"in a mux, after routing": {routed(mux), false},
	} {
		var log logtest.Log
		limiter := limitertest.New(t, core.Options{Logger: log.Logger()})
		handler := nethttplimit.New(limiter, core.Rule{Seconds: 600})(test.next)
		if name == "in a mux, after routing" {
			handler = routed(handler)
		}
		for _, path := range []string{"/unknown", "/shop", "/shop"} {
			handler.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("GET", path, nil))
		}
		want := 0
		if test.warns {
			want = 1
		}
		if n := strings.Count(log.String(), "before the route is known"); n != want {
			t.Errorf("%s: %d warnings, want %d", name, n, want)
		}
	}
}

// routed is a handler inside a mux.
func routed(handler http.Handler) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("/", handler)
	return mux
}

// Two muxes behind StripPrefix know their routes by the same pattern. Their rules share a counter,
// as the documentation says, and the log warns. With names, they count by themselves.
func TestMuxesBehindStripPrefix(t *testing.T) {
	for _, test := range []struct {
		names  [2]string
		last   int
		warned bool
	}{{[2]string{"", ""}, 429, true}, {[2]string{"users", "orders"}, 200, false}} {
		var log logtest.Log
		limiter := limitertest.New(t, core.Options{Logger: log.Logger()})
		outer := http.NewServeMux()
		for i, prefix := range []string{"/users", "/orders"} {
			limit := nethttplimit.New(limiter, core.Rule{Name: test.names[i], Seconds: 600, MaxCount: 1 + i})
			inner := http.NewServeMux()
			inner.Handle("GET /{id}", limit(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})))
			outer.Handle(prefix+"/", http.StripPrefix(prefix, inner))
		}
		for i, path := range []string{"/users/1", "/orders/1", "/orders/1"} {
			w := httptest.NewRecorder()
			outer.ServeHTTP(w, httptest.NewRequest("GET", path, nil))
			if want := []int{200, 200, test.last}[i]; w.Code != want {
				t.Errorf("%q: GET %s: status %d, want %d", test.names, path, w.Code, want)
			}
		}
		if warned := log.Count("share a counter") > 0; warned != test.warned {
			t.Errorf("%q: the log says %s", test.names, log.String())
		}
	}
}
