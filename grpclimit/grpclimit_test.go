package grpclimit_test

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"strings"
	"testing"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/emptypb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/core/limittest"
	"github.com/accesslimit/accesslimit/grpclimit"
)

func TestAdapter(t *testing.T) {
	limittest.Run(t, limittest.Adapter{Serve: serve, Do: do, RPC: true})
}

// serve makes a service of each first word of a path, and a method of each second.
func serve(_ testing.TB, l net.Listener, app limittest.App) (stop func()) {
	interceptors := []grpc.UnaryServerInterceptor{recovered, before(app)}
	for _, rules := range app.Use {
		interceptors = append(interceptors, grpclimit.UnaryServerInterceptor(app.Limiter, rules...))
	}
	server := grpc.NewServer(grpc.ChainUnaryInterceptor(interceptors...))
	services := make(map[string]*grpc.ServiceDesc)
	for _, route := range app.Routes {
		service, method, _ := strings.Cut(strings.TrimPrefix(route.Path, "/"), "/")
		if services[service] == nil {
			services[service] = &grpc.ServiceDesc{ServiceName: service, HandlerType: (*any)(nil)}
		}
		services[service].Methods = append(services[service].Methods, grpc.MethodDesc{MethodName: method, Handler: handler(app, route)})
	}
	for _, service := range services {
		server.RegisterService(service, struct{}{})
	}
	go func() { _ = server.Serve(l) }()
	return server.Stop
}

type methodHandler = func(srv any, ctx context.Context, decode func(any) error, interceptor grpc.UnaryServerInterceptor) (any, error)

// handler runs a route inside the server's interceptors and the route's own.
func handler(app limittest.App, route limittest.Route) methodHandler {
	call := func(ctx context.Context, _ any) (any, error) {
		h := &handling{ctx: ctx}
		route.Serve(h)
		return wrapperspb.String(h.text), nil
	}
	info := &grpc.UnaryServerInfo{FullMethod: route.Path}
	for i := len(route.Limits) - 1; i >= 0; i-- {
		limit, next := grpclimit.UnaryServerInterceptor(app.Limiter, route.Limits[i]...), call
		call = func(ctx context.Context, req any) (any, error) { return limit(ctx, req, info, next) }
	}
	return func(_ any, ctx context.Context, decode func(any) error, interceptor grpc.UnaryServerInterceptor) (any, error) {
		req := new(emptypb.Empty)
		if err := decode(req); err != nil {
			return nil, err
		}
		return interceptor(ctx, req, info, call)
	}
}

func recovered(ctx context.Context, req any, _ *grpc.UnaryServerInfo, next grpc.UnaryHandler) (reply any, err error) {
	defer func() {
		if caught := recover(); caught != nil {
			err = status.Error(codes.Internal, fmt.Sprint(caught))
		}
	}()
	return next(ctx, req)
}

func before(app limittest.App) grpc.UnaryServerInterceptor {
	return func(ctx context.Context, req any, _ *grpc.UnaryServerInfo, next grpc.UnaryHandler) (any, error) {
		return next(app.Enter(ctx), req)
	}
}

type handling struct {
	ctx  context.Context
	text string
}

func (h *handling) Context() context.Context     { return h.ctx }
func (h *handling) Text(text string)             { h.text = text }
func (h *handling) Allow(core.Rule, string) bool { panic("gRPC has no Allow") }

// httpStatus is how an outcome looks in HTTP.
var httpStatus = map[codes.Code]int{
	codes.OK: 200, codes.ResourceExhausted: 429, codes.Unauthenticated: 401, codes.Unavailable: 503, codes.Canceled: 503,
	codes.DeadlineExceeded: 503, codes.InvalidArgument: 400, codes.Internal: 500, codes.Unimplemented: 404,
}

// do makes one unary call on a connection of its own.
func do(t testing.TB, dial limittest.Dial, call limittest.Call) limittest.Reply {
	t.Helper()
	conn := connect(t, dial)
	defer conn.Close()
	ctx := t.Context()
	for name, values := range call.Header {
		for _, value := range values {
			ctx = metadata.AppendToOutgoingContext(ctx, name, value)
		}
	}
	var header, trailer metadata.MD
	text := new(wrapperspb.StringValue)
	err := conn.Invoke(ctx, call.Path, new(emptypb.Empty), text, grpc.Header(&header), grpc.Trailer(&trailer))
	reply := limittest.Reply{Status: httpStatus[status.Code(err)], Header: make(http.Header), Body: text.Value}
	if reply.Status == 0 {
		t.Fatal(err)
	}
	for name, values := range trailer {
		for _, value := range values {
			reply.Header.Add(name, value)
		}
	}
	if err != nil {
		readStatus(t, &reply, status.Convert(err), header)
	}
	return reply
}

func readStatus(t testing.TB, reply *limittest.Reply, refusal *status.Status, header metadata.MD) {
	t.Helper()
	reply.Body = refusal.Message()
	for _, detail := range refusal.Details() {
		if retry, ok := detail.(*errdetails.RetryInfo); ok {
			reply.Header.Set("Retry-After", fmt.Sprint(int(retry.RetryDelay.AsDuration().Seconds()+0.999)))
		}
	}
	for name := range header {
		if strings.HasPrefix(name, "ratelimit") || strings.HasPrefix(name, "x-ratelimit") {
			t.Errorf("a refusal sent the header %s, which keeps clients from retrying", name)
		}
	}
}

func connect(t testing.TB, dial limittest.Dial) *grpc.ClientConn {
	t.Helper()
	conn, err := grpc.NewClient("passthrough:///service.test", grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return dial(ctx) }))
	if err != nil {
		t.Fatal(err)
	}
	return conn
}
