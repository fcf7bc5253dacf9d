// Package fiberlimit attaches access limits to fiber routes.
//
//	app.Use(fiberlimit.New(limiter, core.Rule{Name: "api", Seconds: 1, MaxCount: 100}))
//	limit := core.Rule{Seconds: 60, MaxCount: 5, NeedLogin: true}
//	app.Post("/reply", fiberlimit.New(limiter, limit), reply)
//
// A rule without a Name counts each route of an app by itself, by fiber's path with the prefixes of
// groups and mounts. In Use, fiber does not know the route yet, so a rule there needs a Name or
// Paths. core.Options.ClientIP finds the client's address, not c.IP(), and core.ByHost counts by
// the Host that was sent, not by c.Hostname(), for which fiber believes anybody's X-Forwarded-Host
// unless EnableTrustedProxyCheck is set.
//
// fasthttp appends the trailers of a body in chunks to the headers, so c.Get may return one. Rules
// see no trailer. Of a call with such a body, they see only headers that were sent: a middleware
// should leave what it found out about the caller in c.Locals, not in a header that it adds. With
// DisableHeaderNormalizing, a key of core.ByHeader or core.BearerToken counts the first line of any
// spelling, and a handler must read it the same way.
//
// A call ends when its handler returns. A stream writer (SetBodyStreamWriter) or a WebSocket that
// goes on after that holds no slot of Concurrency any more: take one with core.Slots.Hold, and
// release it there. Around fiber's timeout.New, which is deprecated, a call ends at the timeout, while
// the handler still runs; timeout.NewWithContext waits for it. fiber does not notice a caller who
// leaves. A panic ends the process unless a recovery is installed. The slots of a process that died
// are free after the Window.
//
// A rule with Count receives the status that was set, or the one that fiber's own error handler
// will send for the error that the handler returned: the code of a *fiber.Error, even a wrapped
// one, and 500 for any other error. An ErrorHandler of yours runs later, so Count does not see its
// status. If it gives errors another status, turn them into a *fiber.Error before they reach this
// middleware.
package fiberlimit

import (
	"context"
	"errors"
	"net/netip"
	"sync"

	"github.com/gofiber/fiber/v2"

	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/core/adapter"
)

// New returns a middleware for one route, a group or the whole app, which decides by these rules
// together. It panics with a *core.RuleError if a rule is wrong.
func New(limiter *core.Limiter, rules ...core.Rule) fiber.Handler {
	return With(limiter.MustGuard(rules...))
}

// With returns a middleware that decides by a guard.
func With(guard *core.Guard) fiber.Handler {
	return func(c *fiber.Ctx) error {
		answer := guard.Check(view{c})
		goOn, err := carryOut(c, answer)
		switch {
		case !goOn:
			return err
		case answer.Final():
			return c.Next()
		}
		answer.Run(func() (status int) {
			err = c.Next()
			return outcome(c, err)
		})
		return err
	}
}

// outcome returns the status that the call ends with. fiber derives it from the error when all
// middlewares have returned.
func outcome(c *fiber.Ctx, err error) (status int) {
	if err == nil {
		return c.Response().StatusCode()
	}
	var failed *fiber.Error // declared here, because it costs an allocation
	if errors.As(err, &failed) {
		return failed.Code
	}
	return fiber.StatusInternalServerError
}

// Allow decides by a check inside a handler, for a subject that only the handler knows, such as the
// account in a login form. An empty subject keeps each rule's own key. Allow sets the headers. If
// it returns false, it has written the refusal too, and the handler must return.
func Allow(c *fiber.Ctx, check *core.Check, subject string) bool {
	goOn, _ := carryOut(c, check.Allow(view{c}, subject))
	return goOn
}

// OwnLimits returns a handler that shows callers what is left of their own limits, as JSON, and
// charges nothing. See core.Guard.OwnLimits.
func OwnLimits(guard *core.Guard) fiber.Handler {
	return func(c *fiber.Ctx) error {
		own := guard.OwnLimits(view{c})
		own.SetHeader(&c.Response().Header)
		status, _, body := own.Reply()
		return c.Status(status).Send(body)
	}
}

func carryOut(c *fiber.Ctx, answer core.Answer) (goOn bool, err error) {
	if answer.Context != nil {
		c.SetUserContext(answer.Context)
	}
	if answer.Refusal == nil {
		return true, nil
	}
	answer.Refusal.SetHeader(&c.Response().Header)
	return false, c.Status(answer.Refusal.Status).Send(answer.Refusal.Body)
}

// view is one pointer wide, so that passing it to the core costs no allocation. Its strings are
// fiber's, which the next request on the connection overwrites: the core copies what it keeps.
type view struct{ c *fiber.Ctx }

func (v view) Context() context.Context             { return v.c.UserContext() }
func (v view) Method() string                       { return v.c.Method() }
func (v view) Path() string                         { return v.c.Path() }
func (v view) Query(name string) string             { return v.c.Query(name) }
func (v view) Param(name string) string             { return v.c.Params(name) }
func (v view) Cookie(name string) string            { return v.c.Cookies(name) }
func (v view) Value(key any) any                    { return firstValue(v.c.Locals(key), v.c.UserContext().Value(key)) }
func (v view) ResponseHeader() adapter.HeaderWriter { return &v.c.Response().Header }

// Loose reports that fiber serves /Users/ where /users is registered, unless the app's
// configuration says otherwise.
func (v view) Loose() (anyCase, anySlash bool) {
	config := v.c.App().Config()
	return !config.CaseSensitive, !config.StrictRouting
}

// Host returns the host of the target if it has one, otherwise the header's.
func (v view) Host() string { return string(v.c.Request().URI().Host()) }

// Size returns -1 for a body sent in chunks, because no header has its length. For fasthttp, the
// length of a GET without a body is -2.
func (v view) Size() int64 {
	if length := v.c.Request().Header.ContentLength(); length != -2 {
		return int64(length)
	}
	return 0
}

// RemoteAddr returns the connection's address. For a unix socket, fiber's own c.IP() would be
// 0.0.0.0.
func (v view) RemoteAddr() netip.Addr { return adapter.PeerOf(v.c.Context().RemoteAddr()) }

func firstValue(first, second any) any {
	if first != nil {
		return first
	}
	return second
}

// Route returns fiber's path for the route. In Use that is the prefix which Use was given, and the
// route is not known.
func (v view) Route() string {
	route := v.c.Route()
	if len(route.Handlers) == 0 || v.inUse(route) {
		return ""
	}
	return route.Path
}

// Routed reports whether the call has passed Use. fiber makes a route without handlers for a call
// that no route matches.
func (v view) Routed() bool {
	route := v.c.Route()
	return len(route.Handlers) == 0 || !v.inUse(route)
}

// inUse reports whether Use made the route.
func (v view) inUse(route *fiber.Route) bool {
	known, ok := ofUse.Load(route)
	if !ok {
		known, _ = ofUse.LoadOrStore(route, usedAsMiddleware(v.c.App(), route))
	}
	return known.(bool)
}

// ofUse maps each *fiber.Route to a bool that reports whether Use made it. It has as many entries
// as the apps have routes.
var ofUse sync.Map

// usedAsMiddleware reports whether Use made the route. fiber does not export that, but it lists the
// other routes. A route in that list is a copy with the same handlers.
func usedAsMiddleware(app *fiber.App, route *fiber.Route) bool {
	for _, listed := range app.GetRoutes(true) {
		if len(listed.Handlers) > 0 && &listed.Handlers[0] == &route.Handlers[0] {
			return false
		}
	}
	return true
}
