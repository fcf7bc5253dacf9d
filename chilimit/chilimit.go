// Package chilimit attaches access limits to routers of chi v5.
//
//	router.Use(chilimit.New(limiter, core.Rule{Name: "api", Seconds: 1, MaxCount: 100}))
//	limit := core.Rule{Seconds: 60, MaxCount: 5, NeedLogin: true}
//	router.With(chilimit.New(limiter, limit)).Post("/reply", reply)
//
// A rule without a Name counts each route by itself: its pattern, with those of the routers that it
// is mounted in, and the call's method. That holds in Use too, at the top and in a router below: the
// middleware asks the routers for the route that they will find. So middlewares that change what is
// routed, such as StripSlashes, CleanPath and GetHead, belong in Use at the top, in front of it.
// All calls that chi answers with 404 or 405 share one counter. In Use, a mounted handler that is
// not a chi.Routes counts as one route, together with any router inside it. Around a router, outside of
// Use, no route is known, so a rule needs a Name or Paths. A router without any route answers 404
// without its middlewares. Paths and Except hold with and without a slash at the end, because chi
// serves a mounted router by both.
//
// A rule with Count receives the status that was sent, as in package nethttplimit. To limit some
// operations of huma, make another API for them on router.With: its huma.Config has the same OpenAPI,
// and an empty OpenAPIPath, DocsPath and SchemasPath. core.Options.ClientIP finds the client's address.
// chi's RealIP must not be in front, because callers choose what it believes.
package chilimit

import (
	"context"
	"net/http"
	"net/netip"

	"github.com/go-chi/chi/v5"

	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/core/adapter"
)

// New returns a middleware for one route or a whole router, which decides by these rules together.
// It panics with a *core.RuleError if a rule is wrong.
func New(limiter *core.Limiter, rules ...core.Rule) func(http.Handler) http.Handler {
	return With(limiter.MustGuard(rules...))
}

// With returns a middleware that decides by a guard.
func With(guard *core.Guard) func(http.Handler) http.Handler {
	routes := new(finder)
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			answer := guard.Check(&view{w: w, r: r, routes: routes})
			r, goOn := carryOut(w, r, answer)
			switch {
			case !goOn:
			case answer.Final():
				next.ServeHTTP(w, r)
			default:
				run(answer, next, w, r)
			}
		})
	}
}

// run runs the handler of a call that is not over when it has been let through.
func run(answer core.Answer, next http.Handler, w http.ResponseWriter, r *http.Request) {
	watched, response := answer.Watch(w, r)
	defer response.Finish()
	answer.Run(func() (status int) {
		next.ServeHTTP(watched, r)
		return response.Status()
	})
}

// Allow decides by a check inside a handler, for a subject that only the handler knows, such as the
// account in a login form. An empty subject keeps each rule's own key. Allow sets the headers. If it
// returns false, it has written the refusal too, and the handler must return.
func Allow(w http.ResponseWriter, r *http.Request, check *core.Check, subject string) bool {
	_, goOn := carryOut(w, r, check.Allow(&view{w: w, r: r}, subject))
	return goOn
}

// OwnLimits returns a handler that shows callers what is left of their own limits, as JSON, and
// charges nothing. See core.Guard.OwnLimits.
func OwnLimits(guard *core.Guard) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		own := guard.OwnLimits(&view{w: w, r: r})
		own.SetHeader(w.Header())
		status, _, body := own.Reply()
		w.WriteHeader(status)
		_, _ = w.Write(body) // a caller who has left needs no answer
	})
}

// carryOut writes the refusal, if there is one, or returns the request for the handler.
func carryOut(w http.ResponseWriter, r *http.Request, answer core.Answer) (onward *http.Request, goOn bool) {
	if answer.Refusal != nil {
		answer.Refusal.SetHeader(w.Header())
		w.WriteHeader(answer.Refusal.Status)
		_, _ = w.Write(answer.Refusal.Body) // a caller who has left needs no answer
		return r, false
	}
	if answer.Context != nil {
		r = r.WithContext(answer.Context)
	}
	return r, true
}

// view implements adapter.View.
type view struct {
	w      http.ResponseWriter
	r      *http.Request
	routes *finder      // nil in a handler, where the route has been found
	found  *chi.Context // of the route; nil until it is asked for
}

func (v *view) Context() context.Context             { return v.r.Context() }
func (v *view) Route() string                        { return pattern(v.route()) }
func (v *view) Routed() bool                         { return chi.RouteContext(v.r.Context()) != nil }
func (v *view) Loose() (anyCase, anySlash bool)      { return false, true } // of a mounted router, or by StripSlashes
func (v *view) RemoteAddr() netip.Addr               { return adapter.PeerAddr(v.r.RemoteAddr) }
func (v *view) Host() string                         { return v.r.Host }
func (v *view) Header(name string) []string          { return v.r.Header[name] }
func (v *view) Query(name string) string             { return v.r.URL.Query().Get(name) }
func (v *view) Param(name string) string             { return v.route().URLParam(name) }
func (v *view) Value(key any) any                    { return v.r.Context().Value(key) }
func (v *view) Size() int64                          { return v.r.ContentLength }
func (v *view) ResponseHeader() adapter.HeaderWriter { return v.w.Header() }

// Method returns the method that chi routes, which a middleware may have changed: otherwise its callers
// would choose between two counters of a route. A HEAD that is routed as a GET is still one.
func (v *view) Method() string {
	now := chi.RouteContext(v.r.Context())
	if now == nil || now.RouteMethod == "" || now.RouteMethod == http.MethodGet && v.r.Method == http.MethodHead {
		return v.r.Method
	}
	return now.RouteMethod
}

// Path returns the undecoded path if the client's spelling differs, because chi routes by that.
func (v *view) Path() string {
	if raw := v.r.URL.RawPath; raw != "" {
		return raw
	}
	return v.r.URL.Path
}

// Cookie implements adapter.View.
func (v *view) Cookie(name string) string {
	cookie, err := v.r.Cookie(name)
	if err != nil {
		return ""
	}
	return cookie.Value
}

// route returns what chi knows of the call's route, or will know. It is empty if there is none.
func (v *view) route() *chi.Context {
	if v.found == nil {
		v.found = v.routes.find(v.r)
	}
	return v.found
}
