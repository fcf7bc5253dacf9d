package frameworks

import (
	"net/http"
	"slices"

	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/core/adaptertest"
	"github.com/accesslimit/accesslimit/nethttplimit"
)

// NetHTTP returns an app made with a ServeMux, and with around between it and the limits of Use.
func NetHTTP(app adaptertest.App, around func(mux http.Handler) http.Handler) http.Handler {
	handler := around(newMux(app))
	for _, rules := range slices.Backward(app.Use) {
		handler = nethttplimit.New(app.Limiter, rules...)(handler)
	}
	return Recovered(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		handler.ServeHTTP(w, r.WithContext(app.Enter(r.Context())))
	}))
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
			route.Serve(HTTPHandling{adaptertest.HTTPHandling{Writer: w, Request: r}})
		})
		if route.Recovers {
			handler = Recovered(handler)
		}
		for _, guard := range slices.Backward(route.Guards) {
			handler = nethttplimit.With(guard)(handler)
		}
		mux.Handle(pattern, handler)
	}
	return mux
}

// Recovered replies 500 if a handler panics.
func Recovered(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer func() {
			if recover() != nil {
				w.WriteHeader(http.StatusInternalServerError)
			}
		}()
		next.ServeHTTP(w, r)
	})
}

// HTTPHandling is what a handler of net/http can do. It implements adaptertest.Handling.
type HTTPHandling struct{ adaptertest.HTTPHandling }

func (h HTTPHandling) Allow(check *core.Check, subject string) bool {
	return nethttplimit.Allow(h.Writer, h.Request, check, subject)
}
func (h HTTPHandling) OwnLimits(guard *core.Guard) {
	nethttplimit.OwnLimits(guard).ServeHTTP(h.Writer, h.Request)
}
