// Package nethttplimit attaches access limits to net/http handlers.
//
//	limit := core.Rule{Seconds: 60, MaxCount: 5, NeedLogin: true}
//	mux.Handle("POST /reply", nethttplimit.New(limiter, limit)(reply))
//	everywhere := nethttplimit.New(limiter, core.Rule{Name: "api", Seconds: 1, MaxCount: 100})
//	http.ListenAndServe(":8080", everywhere(mux))
//
// A rule without a Name counts each pattern by itself: the one that the *http.ServeMux matched,
// with the call's method and without the host. Two muxes behind http.StripPrefix that have the same
// pattern share its counter, so their rules need a Name. A middleware around a mux asks it for the
// pattern. For chi there is package chilimit. Around other handlers no route is known, so a rule needs
// a Name or Paths. With gorilla/mux, another middleware in front can set Request.Pattern to what
// mux.CurrentRoute(r).GetPathTemplate() returns. Behind http.StripPrefix the path is the stripped one.
// A middleware around the mux that huma's humago.New gets knows the patterns of its operations. A
// templ.Handler is a handler as any other. core.Options.ClientIP finds the client's address.
//
// A rule with Count receives the status that was sent. If the handler sent none after the caller
// had left, it receives 200 and 499. For a connection that the handler took over (a WebSocket) it
// receives 200, or 101 if the handler sent that by WriteHeader. Only with such a rule, or with
// Concurrency, does the handler get another http.ResponseWriter, which can do the same, deadlines
// through http.ResponseController. Inside http.TimeoutHandler a call ends, and frees its slot, when
// its handler does; outside, at the timeout.
//
// Do not put a middleware into the adaptor for net/http of another framework, such as echo or fiber:
// Count, slots and routes are wrong there. Clients of gRPC and connect see a refusal as unavailable,
// which some retry at once.
package nethttplimit

import (
	"context"
	"net/http"
	"net/netip"
	"strings"
	"sync"

	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/core/adapter"
)

// New returns a middleware for one handler or a whole mux, which decides by these rules together.
// It panics with a *core.RuleError if a rule is wrong.
func New(limiter *core.Limiter, rules ...core.Rule) func(http.Handler) http.Handler {
	return With(limiter.MustGuard(rules...))
}

// With returns a middleware that decides by a guard.
func With(guard *core.Guard) func(http.Handler) http.Handler {
	return func(next http.Handler) http.Handler {
		mux, _ := next.(*http.ServeMux)
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			answer := show(w, r, mux, guard.Check)
			switch goOn := carryOut(w, answer); {
			case !goOn:
			case answer.Final() && answer.Context == nil:
				next.ServeHTTP(w, r)
			default:
				serve(next, w, r, answer)
			}
		})
	}
}

// serve runs the handler of a call whose outcome matters, or that has a context of its own.
func serve(next http.Handler, w http.ResponseWriter, r *http.Request, answer core.Answer) {
	inner := r
	if answer.Context != nil {
		inner = r.WithContext(answer.Context)
	}
	watched, response := answer.Watch(w, r)
	defer response.Finish()
	answer.Run(func() (status int) {
		next.ServeHTTP(watched, inner)
		return response.Status()
	})
	r.Pattern = inner.Pattern // so that a middleware around this one still sees the route
}

// Allow decides by a check inside a handler, for a subject that only the handler knows, such as the
// account in a login form. An empty subject keeps each rule's own key. Allow sets the headers. If
// it returns false, it has written the refusal too, and the handler must return.
func Allow(w http.ResponseWriter, r *http.Request, check *core.Check, subject string) bool {
	return carryOut(w, show(w, r, nil, func(v adapter.View) core.Answer { return check.Allow(v, subject) }))
}

// OwnLimits returns a handler that shows callers what is left of their own limits, as JSON, and
// charges nothing. See core.Guard.OwnLimits.
func OwnLimits(guard *core.Guard) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		own := guard.OwnLimits(&view{w, r, nil})
		own.SetHeader(w.Header())
		status, _, body := own.Reply()
		w.WriteHeader(status)
		_, _ = w.Write(body) // a caller who has left needs no answer
	})
}

func carryOut(w http.ResponseWriter, answer core.Answer) (goOn bool) {
	if answer.Refusal == nil {
		return true
	}
	answer.Refusal.SetHeader(w.Header())
	w.WriteHeader(answer.Refusal.Status)
	_, _ = w.Write(answer.Refusal.Body) // a caller who has left needs no answer
	return false
}

// view comes from a pool, because passing more than one word to the core would cost an allocation.
type view struct {
	w   http.ResponseWriter
	r   *http.Request
	mux *http.ServeMux // nil unless the middleware is around one
}

var views = sync.Pool{New: func() any { return new(view) }}

func show(w http.ResponseWriter, r *http.Request, mux *http.ServeMux, check func(adapter.View) core.Answer) core.Answer {
	v := views.Get().(*view)
	*v = view{w, r, mux}
	answer := check(v)
	*v = view{}
	views.Put(v)
	return answer
}

func (v *view) Context() context.Context             { return v.r.Context() }
func (v *view) Method() string                       { return v.r.Method }
func (v *view) RemoteAddr() netip.Addr               { return adapter.PeerAddr(v.r.RemoteAddr) }
func (v *view) Host() string                         { return v.r.Host }
func (v *view) Header(name string) []string          { return v.r.Header.Values(name) }
func (v *view) Query(name string) string             { return v.r.URL.Query().Get(name) }
func (v *view) Param(name string) string             { return v.r.PathValue(name) }
func (v *view) Value(key any) any                    { return v.r.Context().Value(key) }
func (v *view) Size() int64                          { return v.r.ContentLength }
func (v *view) ResponseHeader() adapter.HeaderWriter { return v.w.Header() }

// Cookie implements adapter.View.
func (v *view) Cookie(name string) string {
	cookie, err := v.r.Cookie(name)
	if err != nil {
		return ""
	}
	return cookie.Value
}

// Path returns the undecoded path if the client's spelling differs. A mux routes by its segments:
// /a%2Fb has one, /a/b has two.
func (v *view) Path() string {
	if raw := v.r.URL.RawPath; raw != "" {
		return raw
	}
	return v.r.URL.Path
}

// Routed reports whether a mux has looked for the pattern: the one inside, or one around this
// middleware.
func (v *view) Routed() bool { return v.mux != nil || v.r.Pattern != "" }

// Route returns the pattern without method and host: for "GET example.com/users/{id}" it is
// /users/{id}. A mux inside is asked first, before the match of a mux outside is used.
func (v *view) Route() string {
	pattern := ""
	if v.mux != nil {
		_, pattern = v.mux.Handler(v.r)
	}
	if pattern == "" {
		pattern = v.r.Pattern
	}
	if slash := strings.IndexByte(pattern, '/'); slash >= 0 {
		return pattern[slash:]
	}
	return ""
}
