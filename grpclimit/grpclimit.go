// Package grpclimit attaches access limits to gRPC services.
//
//	grpc.NewServer(
//		grpc.ChainUnaryInterceptor(grpclimit.UnaryServerInterceptor(limiter, rules...)),
//		grpc.ChainStreamInterceptor(grpclimit.StreamServerInterceptor(limiter, rules...)),
//	)
//
// The method is the route: a rule without a Name counts each method by itself, also over several
// servers, and Paths and Except match the full method, such as /grpc.health.v1.Health/*. Methods
// that only grpc.UnknownServiceHandler serves share one counter. A stream is charged when it opens.
// Limits are sent in trailers. A refusal is RESOURCE_EXHAUSTED with RetryInfo and QuotaFailure
// details. It never sends headers, which would keep clients from retrying.
//
// A rule with Count receives codes as they are sent: 0 (OK), 16 (UNAUTHENTICATED) and so on. For a
// wrapped status it receives its code, for a context's error 1 or 4, for any other error 2
// (UNKNOWN), and for a panic 13 (INTERNAL). A Count written for HTTP, such as status >= 400, takes
// all of them for successes. A client can cancel a stream after most of its messages, so for
// streams a Count of successes should count 1 (CANCELED), too. A slot of Concurrency is held until
// the handler returns, also that of a stream whose client has left before. A panic ends the process
// unless an interceptor recovers.
package grpclimit

import (
	"context"
	"net/http"
	"net/netip"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/protoadapt"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/core/adapter"
)

// UnaryServerInterceptor returns an interceptor that decides unary calls by these rules together.
// It panics with a *core.RuleError if a rule is wrong.
func UnaryServerInterceptor(limiter *core.Limiter, rules ...core.Rule) grpc.UnaryServerInterceptor {
	return unary(limiter.MustGuard(rules...))
}

// With returns interceptors for unary calls and for streams that decide by one guard.
func With(guard *core.Guard) (grpc.UnaryServerInterceptor, grpc.StreamServerInterceptor) {
	return unary(guard), stream(guard)
}

// Allow decides by a check inside a handler, for a subject that only the handler knows. An empty
// subject keeps each rule's own key. The context is the handler's. If the call may not go on, Allow
// returns the status that the handler must return. Danger: in a handler of
// grpc.UnknownServiceHandler without an interceptor of this package, callers choose the routes of
// rules without a Name.
func Allow(ctx context.Context, decide *core.Check, subject string) error {
	method, _ := grpc.Method(ctx)
	answer, last := check(ctx, method, func(v adapter.View) core.Answer { return decide.Allow(v, subject) })
	if last != nil {
		last.send()
	}
	if answer.Refusal != nil {
		return refuse(answer.Refusal)
	}
	return nil
}

// OwnLimits returns what is left of the caller's own limits, and charges nothing, for a method that
// shows callers their limits. The context is the handler's. The error is the status of a caller
// whose limits cannot be shown. See core.Guard.OwnLimits.
func OwnLimits(ctx context.Context, guard *core.Guard) ([]core.Decision, error) {
	var own core.OwnLimits
	method, _ := grpc.Method(ctx)
	check(ctx, method, func(v adapter.View) core.Answer {
		own = guard.OwnLimits(v)
		return core.Answer{Refusal: own.Refusal}
	})
	if own.Refusal != nil {
		return nil, refuse(own.Refusal)
	}
	return own.Limits, nil
}

func unary(guard *core.Guard) grpc.UnaryServerInterceptor {
	return func(ctx context.Context, req any, info *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (reply any, err error) {
		answer, last := check(ctx, info.FullMethod, guard.Check)
		if answer.Refusal != nil {
			return nil, refuse(answer.Refusal)
		}
		if answer.Context != nil {
			ctx = answer.Context
		}
		if last != nil {
			ctx = context.WithValue(ctx, lastTrailersKey{}, last)
			defer last.send()
		}
		answer.Run(func() (status int) {
			reply, err = handler(ctx, req)
			return outcome(err)
		})
		return reply, err
	}
}

// StreamServerInterceptor returns an interceptor that decides streams, when they are opened, by
// these rules together. It panics with a *core.RuleError if a rule is wrong.
func StreamServerInterceptor(limiter *core.Limiter, rules ...core.Rule) grpc.StreamServerInterceptor {
	return stream(limiter.MustGuard(rules...))
}

func stream(guard *core.Guard) grpc.StreamServerInterceptor {
	return func(srv any, stream grpc.ServerStream, info *grpc.StreamServerInfo, handler grpc.StreamHandler) (err error) {
		if srv == nil && info.IsClientStream && info.IsServerStream { // the handler is that of grpc.UnknownServiceHandler
			stream = inContext{stream, context.WithValue(stream.Context(), unknownKey{}, true)}
		}
		answer, last := check(stream.Context(), info.FullMethod, guard.Check)
		if answer.Refusal != nil {
			return refuse(answer.Refusal)
		}
		if answer.Context != nil {
			stream = inContext{stream, answer.Context}
		}
		if last != nil {
			stream = inContext{stream, context.WithValue(stream.Context(), lastTrailersKey{}, last)}
			defer last.send()
		}
		answer.Run(func() (status int) {
			err = handler(srv, stream)
			return outcome(err)
		})
		return err
	}
}

// outcome returns the code that the call ends with on the wire. The error of a context has a code
// of its own there.
func outcome(err error) (code int) {
	if s, ok := status.FromError(err); ok {
		return int(s.Code())
	}
	return int(status.FromContextError(err).Code())
}

// unknownKey is the key in the context of a call whose method the server does not know.
type unknownKey struct{}

// inContext is a stream with the context that the core gave it.
type inContext struct {
	grpc.ServerStream
	ctx context.Context
}

// Context implements grpc.ServerStream.
func (s inContext) Context() context.Context { return s.ctx }

// check asks the core, and sends the headers of its answer as trailers. Trailers that an
// interceptor inside may still replace are returned instead, to be sent when the handler has
// returned.
func check(ctx context.Context, method string, decide func(adapter.View) core.Answer) (answer core.Answer, last *lastTrailers) {
	v := &view{method: method, trailer: trailer{ctx: ctx}}
	answer = decide(v)
	if answer.Refusal != nil {
		answer.Refusal.SetPushback(&v.trailer)
	}
	stream := grpc.ServerTransportStreamFromContext(ctx)
	if stream != nil && len(v.trailer.md) > 0 {
		_ = stream.SetTrailer(v.trailer.md) // fails only when the call is over
	}
	switch last = v.trailer.last; {
	case last == nil || v.trailer.outer:
		return answer, nil
	case answer.Refusal != nil:
		last.send()
		return answer, nil
	}
	return answer, last
}

// refuse returns the status of a refusal. It has a RetryInfo only if waiting helps, because clients
// retry then. A reference is the serving data of a RequestInfo, which clients attach to feedback.
func refuse(r *core.Refusal) error {
	var details []protoadapt.MessageV1
	if r.RetryAfter > 0 {
		details = append(details, &errdetails.RetryInfo{RetryDelay: durationpb.New(r.RetryAfter)})
	}
	if len(r.Violated) > 0 {
		failure := new(errdetails.QuotaFailure)
		for _, title := range r.Violated {
			failure.Violations = append(failure.Violations, &errdetails.QuotaFailure_Violation{Subject: title, Description: r.Message})
		}
		details = append(details, failure)
	}
	if r.Reference != "" {
		details = append(details, &errdetails.RequestInfo{ServingData: r.Reference})
	}
	refusal := status.New(codes.Code(r.Code), r.Message) // never codes.OK: that would be no error
	if detailed, err := refusal.WithDetails(details...); err == nil {
		refusal = detailed
	}
	return refusal.Err()
}

type view struct {
	method  string
	trailer trailer
}

func (v *view) Context() context.Context             { return v.trailer.ctx }
func (v *view) Method() string                       { return "" }
func (v *view) Path() string                         { return v.method }
func (v *view) Value(key any) any                    { return v.trailer.ctx.Value(key) }
func (v *view) Size() int64                          { return -1 }
func (v *view) ResponseHeader() adapter.HeaderWriter { return &v.trailer }

func (v *view) Query(string) string { return "" }
func (v *view) Param(string) string { return "" }

// Route returns the method, or "" if the server does not know it, because callers could make up
// any number of methods.
func (v *view) Route() string {
	if v.Value(unknownKey{}) != nil {
		return ""
	}
	return v.method
}

// Header returns the values of the call's metadata.
func (v *view) Header(name string) []string {
	return metadata.ValueFromIncomingContext(v.trailer.ctx, name)
}

// Cookie returns a cookie from the metadata cookie, which some gateways forward.
func (v *view) Cookie(name string) string {
	r := http.Request{Header: http.Header{"Cookie": v.Header("cookie")}}
	cookie, err := r.Cookie(name)
	if err != nil {
		return ""
	}
	return cookie.Value
}

// Host returns the call's :authority.
func (v *view) Host() string {
	if lines := v.Header(":authority"); len(lines) > 0 {
		return lines[0]
	}
	return ""
}

// RemoteAddr returns the peer's address. A call within the process has none.
func (v *view) RemoteAddr() netip.Addr {
	if p, ok := peer.FromContext(v.trailer.ctx); ok {
		return adapter.PeerOf(p.Addr)
	}
	return netip.Addr{}
}
