package nethttplimit_test

import (
	"context"
	"io"
	"log"
	"net"
	"net/http"
	"slices"
	"strconv"
	"testing"

	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/core/adaptertest"
	"github.com/accesslimit/accesslimit/nethttplimit"
)

func TestAdapter(t *testing.T) {
	adaptertest.Run(t, adaptertest.Adapter{Serve: serve, Endings: endings})
}

// TestAroundAnotherMiddleware runs the adapter's tests where it cannot ask the mux for the route.
func TestAroundAnotherMiddleware(t *testing.T) {
	adaptertest.RunPaths(t, adaptertest.Adapter{
		Cannot: map[adaptertest.Feature]string{adaptertest.RouteInUse: "a mux inside another handler cannot be asked"},
		Serve: serveWith(func(mux http.Handler) http.Handler {
			return http.HandlerFunc(mux.ServeHTTP)
		}),
	})
}

func serve(t testing.TB, l net.Listener, app adaptertest.App) (stop func()) {
	return serveWith(func(mux http.Handler) http.Handler { return mux })(t, l, app)
}

func serveWith(around func(mux http.Handler) http.Handler) func(testing.TB, net.Listener, adaptertest.App) (stop func()) {
	return func(_ testing.TB, l net.Listener, app adaptertest.App) (stop func()) {
		mux := newMux(app)
		server := &http.Server{
			Handler:  recovered(before(app, wrap(around(mux), app.Limiter, app.Use))),
			ErrorLog: log.New(io.Discard, "", 0),
		}
		go func() { _ = server.Serve(l) }()
		return func() { _ = server.Close() }
	}
}

func newMux(app adaptertest.App) *http.ServeMux {
	mux := http.NewServeMux()
	for _, route := range app.Routes {
		pattern := route.Path
		switch route.Method {
		case "":
			pattern = "GET " + pattern
		case "*":
		default:
			pattern = route.Method + " " + pattern
		}
		var handler http.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			route.Serve(handling{w, r, app.Limiter})
		})
		if route.Recovers {
			handler = recovered(handler)
		}
		for _, guard := range slices.Backward(route.Guards) {
			handler = nethttplimit.With(guard)(handler)
		}
		mux.Handle(pattern, wrap(handler, app.Limiter, route.Limits))
	}
	return mux
}

func wrap(handler http.Handler, limiter *core.Limiter, limits [][]core.Rule) http.Handler {
	for i := len(limits) - 1; i >= 0; i-- {
		handler = nethttplimit.New(limiter, limits[i]...)(handler)
	}
	return handler
}

func recovered(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer func() {
			if recover() != nil {
				w.WriteHeader(http.StatusInternalServerError)
			}
		}()
		next.ServeHTTP(w, r)
	})
}

func before(app adaptertest.App, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		next.ServeHTTP(w, r.WithContext(app.Enter(r.Context())))
	})
}

type handling struct {
	w       http.ResponseWriter
	r       *http.Request
	limiter *core.Limiter
}

func (h handling) Context() context.Context  { return h.r.Context() }
func (h handling) Header(name string) string { return h.r.Header.Get(name) }
func (h handling) Query(name string) string  { return h.r.URL.Query().Get(name) }
func (h handling) Flush()                    { h.w.(http.Flusher).Flush() }
func (h handling) Cookie(name string) string {
	cookie, err := h.r.Cookie(name)
	if err != nil {
		return ""
	}
	return cookie.Value
}
func (h handling) Text(text string) {
	h.w.Header().Set("Content-Length", strconv.Itoa(len(text)))
	_, _ = h.w.Write([]byte(text))
}
func (h handling) Reply(status int) { http.Error(h.w, "replied", status) }
func (h handling) Allow(check *core.Check, subject string) bool {
	return nethttplimit.Allow(h.w, h.r, check, subject)
}
func (h handling) OwnLimits(guard *core.Guard) { nethttplimit.OwnLimits(guard).ServeHTTP(h.w, h.r) }
