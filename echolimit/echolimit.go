// Package echolimit attaches access limits to echo routes.
//
//	e.Use(echolimit.New(limiter, core.Rule{Name: "api", Seconds: 1, MaxCount: 100}))
//	limit := core.Rule{Seconds: 60, MaxCount: 5, NeedLogin: true}
//	e.POST("/reply", reply, echolimit.New(limiter, limit))
//
// A rule without a Name counts each route of an Echo by itself, by echo's path. Attach it by Use,
// not by Pre, where no route is known yet and the method may still be overridden.
// core.Options.ClientIP finds the client's address, not c.RealIP().
//
// A rule with Count receives the status that was sent, or the one that echo's own error handler
// will send for the error that the handler returned: the code of an *echo.HTTPError, and 500 for
// any other error, even one that wraps an *echo.HTTPError. If the caller had left before the call
// was answered, it receives 499 if the handler returned an error that says so, and otherwise 200
// and 499. An HTTPErrorHandler of yours runs later, so Count does not see its status. If it gives
// errors another status, turn them into an *echo.HTTPError before they reach this middleware.
//
// Inside echo's middleware.Timeout, which is deprecated, a call ends, and frees its slot, when its
// handler does; outside, at the timeout, while the handler still runs. ContextTimeout waits for it.
package echolimit

import (
	"context"
	"errors"
	"net/http"
	"net/netip"
	"sync"

	"github.com/labstack/echo/v4"

	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/core/adapter"
)

// New returns a middleware for one route, a group or the whole router, which decides by these rules
// together. It panics with a *core.RuleError if a rule is wrong.
func New(limiter *core.Limiter, rules ...core.Rule) echo.MiddlewareFunc {
	return With(limiter.MustGuard(rules...))
}

// With returns a middleware that decides by a guard.
func With(guard *core.Guard) echo.MiddlewareFunc {
	return func(next echo.HandlerFunc) echo.HandlerFunc {
		return func(c echo.Context) error {
			answer := show(c, guard.Check)
			goOn, err := carryOut(c, answer)
			switch {
			case !goOn:
				return err
			case answer.Final():
				return next(c)
			default:
				return follow(next, c, answer)
			}
		}
	}
}

// follow runs the handler of a call whose outcome matters.
func follow(next echo.HandlerFunc, c echo.Context, answer core.Answer) (err error) {
	caller := c.Request().Context() // next may put another in its place
	reply, finish := watch(c, answer)
	defer finish()
	answer.Run(func() (status int) {
		err = next(c)
		if sent := reply.Status(); adapter.IsFinal(sent) {
			return sent // echo itself does not note a flush or a Hijack
		}
		return outcome(c, err, caller)
	})
	return err
}

// watch lets the core follow what the handlers write. It returns their reply, and a function to call
// when they have returned.
func watch(c echo.Context, answer core.Answer) (reply *adapter.Response, finish func()) {
	own := c.Response().Writer
	watched, reply := answer.Watch(own, c.Request())
	if reply == nil {
		return nil, func() {}
	}
	c.Response().Writer = watched
	return reply, func() {
		// Otherwise a handler has put another writer around it, which may have something left to
		// write.
		if c.Response().Writer == watched {
			c.Response().Writer = own
		}
		reply.Finish()
	}
}

// statusCallerLeft is what Count receives if the handler gave up because its caller left.
const statusCallerLeft = 499

// outcome returns the status that a call without a final one ends with, or 0 if the handler chose
// none. echo derives the status from the error, which it does not unwrap.
func outcome(c echo.Context, err error, caller context.Context) (status int) {
	switch {
	case c.Response().Committed:
		return c.Response().Status
	case err == nil:
		return 0
	case errors.Is(err, context.Canceled) && caller.Err() != nil:
		return statusCallerLeft
	}
	failed, ok := err.(*echo.HTTPError)
	if !ok {
		return http.StatusInternalServerError
	}
	if inner, ok := failed.Internal.(*echo.HTTPError); ok {
		failed = inner
	}
	return failed.Code
}

// Allow decides by a check inside a handler, for a subject that only the handler knows, such as the
// account in a login form. An empty subject keeps each rule's own key. Allow sets the headers. If
// it returns false, it has written the refusal too, and the handler must return.
func Allow(c echo.Context, check *core.Check, subject string) bool {
	goOn, _ := carryOut(c, show(c, func(v adapter.View) core.Answer { return check.Allow(v, subject) }))
	return goOn
}

// OwnLimits returns a handler that shows callers what is left of their own limits, as JSON, and
// charges nothing. See core.Guard.OwnLimits.
func OwnLimits(guard *core.Guard) echo.HandlerFunc {
	return func(c echo.Context) error {
		own := guard.OwnLimits(&view{c})
		own.SetHeader(c.Response().Header())
		return c.Blob(own.Reply())
	}
}

func carryOut(c echo.Context, answer core.Answer) (goOn bool, err error) {
	if answer.Context != nil {
		c.SetRequest(c.Request().WithContext(answer.Context))
	}
	if answer.Refusal == nil {
		return true, nil
	}
	answer.Refusal.SetHeader(c.Response().Header())
	return false, c.Blob(answer.Refusal.Status, answer.Refusal.ContentType, answer.Refusal.Body)
}

// view comes from a pool, because an echo.Context is two words wide, and passing one to the core
// would cost an allocation.
type view struct{ c echo.Context }

var views = sync.Pool{New: func() any { return new(view) }}

func show(c echo.Context, check func(adapter.View) core.Answer) core.Answer {
	v := views.Get().(*view)
	v.c = c
	answer := check(v)
	v.c = nil
	views.Put(v)
	return answer
}

func (v *view) Context() context.Context             { return v.c.Request().Context() }
func (v *view) Method() string                       { return v.c.Request().Method }
func (v *view) Route() string                        { return v.c.Path() }
func (v *view) RemoteAddr() netip.Addr               { return adapter.PeerAddr(v.c.Request().RemoteAddr) }
func (v *view) Host() string                         { return v.c.Request().Host }
func (v *view) Header(name string) []string          { return v.c.Request().Header.Values(name) }
func (v *view) Query(name string) string             { return v.c.QueryParam(name) }
func (v *view) Param(name string) string             { return v.c.Param(name) }
func (v *view) Size() int64                          { return v.c.Request().ContentLength }
func (v *view) ResponseHeader() adapter.HeaderWriter { return v.c.Response().Header() }

// Path returns the undecoded path if the client's spelling differs, because echo routes by that.
func (v *view) Path() string {
	if raw := v.c.Request().URL.RawPath; raw != "" {
		return raw
	}
	return v.c.Request().URL.Path
}

// Cookie implements adapter.View.
func (v *view) Cookie(name string) string {
	cookie, err := v.c.Cookie(name)
	if err != nil {
		return ""
	}
	return cookie.Value
}

func (v *view) Value(key any) any {
	if name, ok := key.(string); ok {
		if value := v.c.Get(name); value != nil {
			return value
		}
	}
	return v.c.Request().Context().Value(key)
}
