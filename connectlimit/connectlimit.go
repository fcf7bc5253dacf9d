// Package connectlimit attaches access limits to handlers of connectrpc.com/connect.
//
//	limits := connect.WithInterceptors(connectlimit.New(limiter, rules...))
//	mux.Handle(shopv1connect.NewShopServiceHandler(shop, limits))
//
// The procedure is the route and the path, whichever protocol and HTTP method the caller uses: a rule
// without a Name counts each procedure by itself. Services of health and reflection are limited only
// if their handlers get the interceptor, too, and then Except leaves them out, as in
// /grpc.health.v1.Health/*. A stream is charged when it opens, and holds a slot of Concurrency until
// its handler returns.
//
// Limits are headers of a unary reply in the Connect protocol, and trailers of all others. A refusal
// is resource_exhausted with RetryInfo, QuotaFailure and Retry-After. connect cannot send trailers
// alone, so grpc-go's own retry policy does not retry it.
//
// Count receives codes: 0 for success, 16 for unauthenticated and so on. An error without a code
// counts as connect sends it: a context's as 1 or 4, any other as 2, and a panic counts as 13. A
// NotModifiedError counts as 2.
//
// Before any interceptor, connect reads the message of a unary call, and answers calls with a wrong
// method, content type, timeout or message by itself. As middleware around a handler of connect,
// nethttplimit answers 429 without a code, which clients take for unavailable and retry, and Count
// sees 200 for errors of gRPC.
package connectlimit

import (
	"context"

	"connectrpc.com/connect"

	"github.com/accesslimit/accesslimit/core"
)

// New returns an interceptor for handlers that decides unary calls and streams by these rules
// together. It panics with a *core.RuleError if a rule is wrong.
func New(limiter *core.Limiter, rules ...core.Rule) connect.Interceptor {
	return With(limiter.MustGuard(rules...))
}

// With returns an interceptor that decides by one guard. It does not limit the calls of clients.
func With(guard *core.Guard) connect.Interceptor { return interceptor{guard} }

// Allow decides by a check inside a handler, for a subject that only the handler knows. An empty
// subject keeps each rule's own key. The context is the handler's. If the call may not go on, Allow
// returns the error that the handler must return.
func Allow(ctx context.Context, decide *core.Check, subject string) error {
	c, err := callOf(ctx)
	if err != nil {
		return err
	}
	if r := decide.Allow(view{ctx, c}, subject).Refusal; r != nil {
		return refuse(c, r)
	}
	return nil
}

// OwnLimits returns what is left of the caller's own limits, and charges nothing, for a procedure
// that shows callers their limits. The context is the handler's. The error is for a caller whose
// limits cannot be shown. See core.Guard.OwnLimits.
func OwnLimits(ctx context.Context, guard *core.Guard) ([]core.Decision, error) {
	c, err := callOf(ctx)
	if err != nil {
		return nil, err
	}
	own := guard.OwnLimits(view{ctx, c})
	if own.Refusal != nil {
		return nil, refuse(c, own.Refusal)
	}
	return own.Limits, nil
}

type interceptor struct{ guard *core.Guard }

// WrapUnary implements connect.Interceptor.
func (i interceptor) WrapUnary(next connect.UnaryFunc) connect.UnaryFunc {
	return func(ctx context.Context, req connect.AnyRequest) (reply connect.AnyResponse, err error) {
		if req.Spec().IsClient {
			return next(ctx, req)
		}
		c, err := callOf(ctx)
		if err != nil {
			return nil, err
		}
		err = i.serve(ctx, c, func(ctx context.Context) (err error) {
			reply, err = next(ctx, req)
			return err
		})
		return reply, err
	}
}

// WrapStreamingClient implements connect.Interceptor.
func (interceptor) WrapStreamingClient(next connect.StreamingClientFunc) connect.StreamingClientFunc {
	return next
}

// WrapStreamingHandler implements connect.Interceptor.
func (i interceptor) WrapStreamingHandler(next connect.StreamingHandlerFunc) connect.StreamingHandlerFunc {
	return func(ctx context.Context, conn connect.StreamingHandlerConn) error {
		return i.serve(ctx, conn, func(ctx context.Context) error { return next(ctx, conn) })
	}
}

// serve runs the handler of a call, unless it is refused.
func (i interceptor) serve(ctx context.Context, c call, handle func(context.Context) error) (err error) {
	answer := i.guard.Check(view{ctx, c})
	if answer.Refusal != nil {
		return refuse(c, answer.Refusal)
	}
	if answer.Context != nil {
		ctx = answer.Context
	}
	answer.Run(func() (status int) {
		err = handle(ctx)
		return outcome(err)
	})
	return err
}
