// Package echo5limit attaches the rules of package core to routes of echo v5.
//
//	e.Use(echo5limit.New(limiter, core.Rule{Name: "api", Seconds: 1, MaxCount: 100}))
//	e.POST("/reply", reply, echo5limit.New(limiter, core.Rule{Seconds: 60, MaxCount: 5, NeedLogin: true}))
//
// A rule without a Name counts each route by itself, under its method and echo's pattern, as in "GET
// /users/:id". Calls that no route matches share one counter. In Pre, echo knows no route yet, so attach
// rules by Use, a Group or a route.
//
// Count receives the status that the handler sent. An error that it returns counts as its
// echo.StatusCode, or as 500, even if an HTTPErrorHandler of the service sends another status.
//
// net/http answers malformed requests and "OPTIONS *" before any middleware. For the hosts given to
// NewVirtualHostHandler, only the middlewares of their own Echo run.
//
// Do not attach nethttplimit by echo.WrapMiddleware: echo sends a handler's error after that has
// returned, so Count would receive 200.
package echo5limit

import (
	"context"
	"net/http"
	"net/netip"

	"github.com/labstack/echo/v5"

	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/core/adapter"
)

// New returns a middleware that decides by these rules together, all charged or none. It panics with
// a *core.RuleError if a rule is wrong.
func New(limiter *core.Limiter, rules ...core.Rule) echo.MiddlewareFunc {
	return With(limiter.MustGuard(rules...))
}

// With returns the middleware for a guard that was made before.
func With(guard *core.Guard) echo.MiddlewareFunc {
	return func(next echo.HandlerFunc) echo.HandlerFunc {
		return func(c *echo.Context) error {
			answer := guard.Check(view{c})
			switch {
			case !carryOut(c, answer):
				return nil
			case answer.Final():
				return next(c)
			default:
				return run(c, answer, next)
			}
		}
	}
}

// run runs the handler of a call after which something may have to be given back.
func run(c *echo.Context, answer core.Answer, next echo.HandlerFunc) (err error) {
	outer := c.Response()
	watched, reply := answer.Watch(outer, c.Request())
	c.SetResponse(watched)
	defer func() {
		c.SetResponse(outer)
		reply.Finish()
	}()
	answer.Run(func() (status int) {
		err = next(c)
		return outcome(c, reply, err)
	})
	return err
}

// outcome returns the status of a call whose handler has returned, or 0 if it sent nothing. A status
// that a handler or a Before function set in echo's Response was sent in place of the one written. But
// with AutoHandleHEAD, the Response still has its first status, 200.
func outcome(c *echo.Context, reply *adapter.Response, err error) (status int) {
	sent := reply.Status()
	response, resolved := echo.ResolveResponseStatus(c.Response(), err)
	changed := response != nil && response.Committed && resolved != http.StatusOK
	if changed || sent == 0 && err != nil {
		return resolved
	}
	return sent
}

// Allow decides inside a handler, for a subject that only the handler knows; "" is each rule's own
// key. After false the refusal is written, and the handler returns nil.
func Allow(c *echo.Context, check *core.Check, subject string) bool {
	return carryOut(c, check.Allow(view{c}, subject))
}

// OwnLimits returns a handler that shows callers their own limits.
func OwnLimits(guard *core.Guard) echo.HandlerFunc {
	return func(c *echo.Context) error {
		own := guard.OwnLimits(view{c})
		own.SetHeader(c.Response().Header())
		return c.Blob(own.Reply())
	}
}

// carryOut writes the refusal, if there is one, and reports whether the call goes on.
func carryOut(c *echo.Context, answer core.Answer) (goOn bool) {
	setContext(c, answer)
	if answer.Refusal == nil {
		return true
	}
	answer.Refusal.SetHeader(c.Response().Header())
	_ = c.Blob(answer.Refusal.Status, answer.Refusal.ContentType, answer.Refusal.Body) // a caller who has left needs none
	return false
}

// setContext passes the context of an answer, if it has one, to the handler.
func setContext(c *echo.Context, answer core.Answer) {
	if answer.Context != nil {
		c.SetRequest(c.Request().WithContext(answer.Context))
	}
}

// view implements adapter.RoutedView. It is one pointer wide, so passing it as an adapter.View
// allocates nothing.
type view struct{ c *echo.Context }

func (v view) Context() context.Context             { return v.c.Request().Context() }
func (v view) Method() string                       { return v.c.Request().Method }
func (v view) Route() string                        { return v.c.Path() }
func (v view) Routed() bool                         { return v.c.Path() != "" || v.c.RouteInfo().Name != "" }
func (v view) RemoteAddr() netip.Addr               { return adapter.PeerAddr(v.c.Request().RemoteAddr) }
func (v view) Host() string                         { return v.c.Request().Host }
func (v view) Header(name string) []string          { return v.c.Request().Header[name] }
func (v view) Query(name string) string             { return v.c.QueryParam(name) }
func (v view) Param(name string) string             { return v.c.Param(name) }
func (v view) Size() int64                          { return v.c.Request().ContentLength }
func (v view) ResponseHeader() adapter.HeaderWriter { return v.c.Response().Header() }

// Path returns the undecoded path if the client's spelling differs, because echo routes by that.
func (v view) Path() string {
	if raw := v.c.Request().URL.RawPath; raw != "" {
		return raw
	}
	return v.c.Request().URL.Path
}

// Cookie implements adapter.View.
func (v view) Cookie(name string) string {
	cookie, err := v.c.Cookie(name)
	if err != nil {
		return ""
	}
	return cookie.Value
}

// Value looks in echo's own store first.
func (v view) Value(key any) any {
	if name, ok := key.(string); ok {
		if value := v.c.Get(name); value != nil {
			return value
		}
	}
	return v.c.Request().Context().Value(key)
}
