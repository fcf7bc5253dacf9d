// Package fiber3limit attaches access limits to the routes of fiber v3:
//
//	app.Use("*", fiber3limit.New(limiter, core.Rule{Name: "api", Seconds: 1, MaxCount: 100}))
//	app.Get("/users/:id", fiber3limit.New(limiter, core.Rule{Seconds: 60, MaxCount: 10}), showUser)
//
// A rule without a Name counts its route, such as /users/:id. In Use fiber does not know the route
// yet, so rules there need a Name or Paths. Without the "*", a request such as "OPTIONS *" reaches a
// handler of "/*" past Use.
//
// Count receives the status that the caller gets. For that, a middleware with a Count or slots calls
// the ErrorHandler itself, as fiber's logger does: those outside see the reply, and no error. Count is
// called, and a slot is free, when the handler has returned; the body of a stream is sent later. Inside
// fiber's timeout.New a call ends, and frees its slot, when its handler does; outside, at the timeout,
// while the handler still runs. No context of fiber ends because the caller leaves. Handlers find the
// decision and the user in c.Context(), not in c.
//
// Fiber answers 501 to unknown methods before any middleware, and with SkipUnmatchedRoutes 404 or
// 405 to requests without a route. To a request that it cannot read, it answers 400, 413 or 431
// after the handlers of Use, but not those behind a limiter. No rule counts any of these.
//
// Settings of proxies do not change whom Options.ClientIP finds. Fasthttp keeps trailers among the
// headers, so if a body comes in chunks, rules do not see a header that only a middleware has
// added. With DisableHeaderNormalizing, a key of core.ByHeader or core.BearerToken counts the first
// line of any spelling, and a handler must read it the same way.
//
// Behind fiber's adaptor, a middleware of net/http ends before the handler begins: with nethttplimit,
// Count would receive 200, and slots would be free by then. Of several lines of a header it sees
// one, and callers choose which: see examples/PROXIES.md.
package fiber3limit

import (
	"context"
	"net/netip"

	"github.com/gofiber/fiber/v3"

	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/core/adapter"
)

// New returns a middleware for one route or the whole app, which decides by these rules together. It
// panics with a *core.RuleError if a rule is wrong.
func New(limiter *core.Limiter, rules ...core.Rule) fiber.Handler {
	return With(limiter.MustGuard(rules...))
}

// With returns the middleware for a guard that was made before.
func With(guard *core.Guard) fiber.Handler {
	return func(c fiber.Ctx) (err error) {
		if unread(c) {
			return nil // fiber answers; the handlers behind this one must not run unlimited
		}
		answer := guard.Check(view{c})
		if !carryOut(c, answer) {
			return nil
		}
		if answer.Final() {
			return c.Next()
		}
		answer.Run(func() (status int) {
			if err = c.Next(); err != nil {
				if err = c.App().ErrorHandler(c, err); err != nil {
					err = c.SendStatus(fiber.StatusInternalServerError) // as fiber does then
				}
			}
			return c.Response().StatusCode()
		})
		return err
	}
}

// Allow decides inside a handler, for a subject that only the handler knows; "" is each rule's own
// key. After false the refusal is written, and the handler returns nil.
func Allow(c fiber.Ctx, check *core.Check, subject string) bool {
	return !unread(c) && carryOut(c, check.Allow(view{c}, subject))
}

// OwnLimits returns a handler that shows callers their own limits.
func OwnLimits(guard *core.Guard) fiber.Handler {
	return func(c fiber.Ctx) error {
		own := guard.OwnLimits(view{c})
		own.SetHeader(&c.Response().Header)
		status, _, body := own.Reply()
		return c.Status(status).Send(body)
	}
}

// carryOut writes the refusal, if there is one, and reports whether the call goes on.
func carryOut(c fiber.Ctx, answer core.Answer) (goOn bool) {
	if answer.Context != nil {
		c.SetContext(answer.Context)
	}
	if answer.Refusal == nil {
		return true
	}
	answer.Refusal.SetHeader(&c.Response().Header)
	_ = c.Status(answer.Refusal.Status).Send(answer.Refusal.Body) // it cannot fail
	return false
}

// view implements adapter.View. Its strings are valid during the call only, as fiber's are.
type view struct{ c fiber.Ctx }

func (v view) Context() context.Context             { return v.c.Context() }
func (v view) Method() string                       { return v.c.Method() }
func (v view) Path() string                         { return v.c.Path() }
func (v view) Routed() bool                         { return v.c.Matched() }
func (v view) RemoteAddr() netip.Addr               { return adapter.PeerOf(v.c.RequestCtx().RemoteAddr()) }
func (v view) Host() string                         { return string(v.c.Request().Host()) } // c.Host may be X-Forwarded-Host
func (v view) Query(name string) string             { return v.c.Query(name) }
func (v view) Param(name string) string             { return v.c.Params(name) }
func (v view) Cookie(name string) string            { return v.c.Cookies(name) }
func (v view) ResponseHeader() adapter.HeaderWriter { return &v.c.Response().Header }

// Route returns "" in Use, where fiber has the pattern of the middleware itself.
func (v view) Route() string {
	if v.c.Matched() {
		return v.c.FullPath()
	}
	return ""
}

// Loose implements adapter.LooseView.
func (v view) Loose() (anyCase, anySlash bool) {
	config := v.c.App().Config()
	return !config.CaseSensitive, !config.StrictRouting
}

// Size returns the length of a body in chunks if fiber has read it.
func (v view) Size() int64 {
	request := v.c.Request()
	if length := request.Header.ContentLength(); length >= 0 || request.IsBodyStream() {
		return int64(max(length, -1))
	}
	return int64(len(request.Body()))
}

// Value looks in fiber's own store first.
func (v view) Value(key any) any {
	if value := v.c.Locals(key); value != nil {
		return value
	}
	return v.c.Context().Value(key)
}
