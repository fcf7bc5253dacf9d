package connectlimit_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"testing"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/types/known/emptypb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/accesslimit/accesslimit/connectlimit"
	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/core/adaptertest"
)

// serve returns a function that serves each route as a procedure of one kind.
func serve(kind connect.StreamType) func(testing.TB, net.Listener, adaptertest.App) (stop func()) {
	return func(_ testing.TB, l net.Listener, app adaptertest.App) (stop func()) {
		handlers, front := make(map[string]http.Handler), []connect.Interceptor{entering(app)}
		for _, rules := range app.Use {
			front = append(front, connectlimit.New(app.Limiter, rules...))
		}
		for _, route := range app.Routes {
			handlers[route.Path] = handler(kind, route, connect.WithRecover(recovered), connect.WithInterceptors(front...), interceptors(route))
		}
		return serveHTTP(l, log.New(io.Discard, "", 0), http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if handler := handlers[r.URL.Path]; handler != nil {
				handler.ServeHTTP(w, r)
				return
			}
			http.NotFound(w, r)
		}))
	}
}

// serveHTTP serves HTTP/1.1, and HTTP/2 without TLS.
func serveHTTP(l net.Listener, logger *log.Logger, handler http.Handler) (stop func()) {
	server := &http.Server{Handler: handler, Protocols: new(http.Protocols), ErrorLog: logger}
	server.Protocols.SetHTTP1(true)
	server.Protocols.SetUnencryptedHTTP2(true)
	go func() { _ = server.Serve(l) }()
	return func() { _ = server.Close() }
}

func recovered(_ context.Context, _ connect.Spec, _ http.Header, caught any) error {
	return connect.NewError(connect.CodeInternal, fmt.Errorf("%v", caught))
}

// interceptors returns the interceptors of a route, the outermost first.
func interceptors(route adaptertest.Route) connect.HandlerOption {
	var options []connect.HandlerOption
	for _, guard := range route.Guards {
		options = append(options, connect.WithInterceptors(connectlimit.With(guard)))
	}
	if route.Recovers {
		options = append(options, connect.WithRecover(recovered))
	}
	return connect.WithHandlerOptions(options...)
}

// entering is the middleware in front.
type entering adaptertest.App

func (e entering) WrapUnary(next connect.UnaryFunc) connect.UnaryFunc {
	return func(ctx context.Context, req connect.AnyRequest) (connect.AnyResponse, error) {
		return next(adaptertest.App(e).Enter(ctx), req)
	}
}

func (e entering) WrapStreamingClient(next connect.StreamingClientFunc) connect.StreamingClientFunc {
	return next
}

func (e entering) WrapStreamingHandler(next connect.StreamingHandlerFunc) connect.StreamingHandlerFunc {
	return func(ctx context.Context, conn connect.StreamingHandlerConn) error {
		return next(adaptertest.App(e).Enter(ctx), conn)
	}
}

type (
	empty = emptypb.Empty
	text  = wrapperspb.StringValue
)

// handler runs a route as a procedure.
func handler(kind connect.StreamType, route adaptertest.Route, options ...connect.HandlerOption) http.Handler {
	run := func(ctx context.Context, send func(*text) error) (*handling, error) {
		h := &handling{ctx: ctx, send: send}
		route.Serve(h)
		return h, h.err
	}
	switch kind {
	case connect.StreamTypeServer:
		return connect.NewServerStreamHandler(route.Path, func(ctx context.Context, _ *connect.Request[empty], stream *connect.ServerStream[text]) error {
			_, err := run(ctx, stream.Send)
			return err
		}, options...)
	case connect.StreamTypeClient:
		return connect.NewClientStreamHandler(route.Path, func(ctx context.Context, stream *connect.ClientStream[empty]) (*connect.Response[text], error) {
			for stream.Receive() {
			}
			h, err := run(ctx, nil)
			return connect.NewResponse(wrapperspb.String(h.text)), err
		}, options...)
	case connect.StreamTypeBidi:
		return connect.NewBidiStreamHandler(route.Path, func(ctx context.Context, stream *connect.BidiStream[empty, text]) error {
			_, err := run(ctx, stream.Send)
			return err
		}, options...)
	}
	return connect.NewUnaryHandler(route.Path, func(ctx context.Context, _ *connect.Request[empty]) (*connect.Response[text], error) {
		h, err := run(ctx, nil)
		return connect.NewResponse(wrapperspb.String(h.text)), err
	}, append(options, connect.WithIdempotency(connect.IdempotencyNoSideEffects))...)
}

type handling struct {
	ctx  context.Context
	send func(*text) error // of a stream that sends messages
	text string
	err  error // what the handler returns
}

// codeOf maps HTTP statuses to the codes that stand for them.
var codeOf = map[int]connect.Code{401: connect.CodeUnauthenticated, 404: connect.CodeNotFound, 500: connect.CodeInternal}

func (h *handling) Context() context.Context { return h.ctx }
func (h *handling) Reply(status int) {
	if code := codeOf[status]; code != 0 {
		h.err = connect.NewError(code, errors.New("replied"))
	}
}
func (h *handling) Allow(check *core.Check, subject string) bool {
	h.err = connectlimit.Allow(h.ctx, check, subject)
	return h.err == nil
}
func (h *handling) OwnLimits(guard *core.Guard) {
	limits, err := connectlimit.OwnLimits(h.ctx, guard)
	if h.err = err; err != nil {
		return
	}
	h.Text(adaptertest.OwnLimitsText(limits))
}
func (h *handling) Header(name string) string {
	info, _ := connect.CallInfoForHandlerContext(h.ctx)
	return info.RequestHeader().Get(name)
}
func (h *handling) Cookie(string) string { return "" }
func (h *handling) Query(string) string  { return "" }
func (h *handling) Flush()               {}
func (h *handling) Text(text string) {
	h.text = text
	if h.send != nil {
		h.err = h.send(wrapperspb.String(text))
	}
}
