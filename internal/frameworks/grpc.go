package frameworks

import (
	"context"
	"fmt"
	"net"
	"slices"
	"strings"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/emptypb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/core/adaptertest"
	"github.com/accesslimit/accesslimit/grpclimit"
)

// GRPC returns the adapter for calls of a kind; the zero kind is unary. It makes a service of the
// first word of each path, and a method of the second.
func GRPC(kind grpc.StreamDesc, options ...grpc.ServerOption) adaptertest.Adapter {
	return adaptertest.Adapter{
		Serve: func(_ testing.TB, l net.Listener, app adaptertest.App) (stop func()) {
			server := newGRPC(app, kind, options)
			go func() { _ = server.Serve(l) }()
			return server.Stop
		},
		Connect: func(t testing.TB, dial adaptertest.Dial) adaptertest.Client {
			return grpcClient{ConnectGRPC(t, dial), InvokeGRPC(kind)}
		},
		RPC: true,
	}
}

func newGRPC(app adaptertest.App, kind grpc.StreamDesc, options []grpc.ServerOption) *grpc.Server {
	if isUnary(kind) {
		options = append(slices.Clip(options), unaryOptions(app))
	} else {
		options = append(slices.Clip(options), streamOptions(app))
	}
	server, services := grpc.NewServer(options...), make(map[string]*grpc.ServiceDesc)
	for _, route := range app.Routes {
		name, method, _ := strings.Cut(strings.TrimPrefix(route.Path, "/"), "/")
		service := services[name]
		if service == nil {
			service = &grpc.ServiceDesc{ServiceName: name, HandlerType: (*any)(nil)}
			services[name] = service
		}
		if isUnary(kind) {
			service.Methods = append(service.Methods, grpc.MethodDesc{MethodName: method, Handler: unaryHandler(route)})
			continue
		}
		kind.StreamName, kind.Handler = method, streamHandler(route)
		service.Streams = append(service.Streams, kind)
	}
	for _, service := range services {
		server.RegisterService(service, struct{}{})
	}
	return server
}

func isUnary(kind grpc.StreamDesc) bool { return !kind.ServerStreams && !kind.ClientStreams }

func unaryOptions(app adaptertest.App) grpc.ServerOption {
	interceptors := []grpc.UnaryServerInterceptor{recovered, func(ctx context.Context, req any, _ *grpc.UnaryServerInfo, next grpc.UnaryHandler) (any, error) {
		return next(app.Enter(ctx), req)
	}}
	for _, rules := range app.Use {
		interceptors = append(interceptors, grpclimit.UnaryServerInterceptor(app.Limiter, rules...))
	}
	return grpc.ChainUnaryInterceptor(interceptors...)
}

func recovered(ctx context.Context, req any, _ *grpc.UnaryServerInfo, next grpc.UnaryHandler) (reply any, err error) {
	defer recoverTo(&err)
	return next(ctx, req)
}

// recoverTo makes an error of a panic. It is deferred.
func recoverTo(err *error) {
	if caught := recover(); caught != nil {
		*err = status.Error(codes.Internal, fmt.Sprint(caught))
	}
}

type grpcMethod = func(srv any, ctx context.Context, decode func(any) error, interceptor grpc.UnaryServerInterceptor) (any, error)

// unaryHandler runs a route inside the server's interceptors and the route's own.
func unaryHandler(route adaptertest.Route) grpcMethod {
	call := func(ctx context.Context, _ any) (any, error) {
		h := &GRPCHandling{Ctx: ctx}
		route.Serve(h)
		return wrapperspb.String(h.text), h.Err
	}
	if route.Recovers {
		next := call
		call = func(ctx context.Context, req any) (any, error) { return recovered(ctx, req, nil, next) }
	}
	info := &grpc.UnaryServerInfo{FullMethod: route.Path}
	for _, guard := range slices.Backward(route.Guards) {
		unary, _ := grpclimit.With(guard)
		next := call
		call = func(ctx context.Context, req any) (any, error) { return unary(ctx, req, info, next) }
	}
	return func(_ any, ctx context.Context, decode func(any) error, interceptor grpc.UnaryServerInterceptor) (any, error) {
		req := new(emptypb.Empty)
		if err := decode(req); err != nil {
			return nil, err
		}
		return interceptor(ctx, req, info, call)
	}
}

// GRPCHandling is what a handler of gRPC can do. It implements adaptertest.Handling.
type GRPCHandling struct {
	Ctx    context.Context
	Stream grpc.ServerStream // of a streaming call
	Err    error             // what the handler returns
	text   string
}

// replied maps HTTP statuses to the errors that stand for them.
var replied = map[int]error{
	401: status.Error(codes.Unauthenticated, "replied"), 404: status.Error(codes.NotFound, "replied"), 500: status.Error(codes.Internal, "replied"),
}

func (h *GRPCHandling) Context() context.Context { return h.Ctx }
func (h *GRPCHandling) Reply(status int)         { h.Err = replied[status] }
func (h *GRPCHandling) Allow(check *core.Check, subject string) bool {
	h.Err = grpclimit.Allow(h.Ctx, check, subject)
	return h.Err == nil
}
func (h *GRPCHandling) OwnLimits(guard *core.Guard) {
	limits, err := grpclimit.OwnLimits(h.Ctx, guard)
	if h.Err = err; err != nil {
		return
	}
	h.Text(adaptertest.OwnLimitsText(limits))
}
func (h *GRPCHandling) Header(name string) string {
	md, _ := metadata.FromIncomingContext(h.Ctx)
	if values := md.Get(name); len(values) > 0 {
		return values[0]
	}
	return ""
}
func (h *GRPCHandling) Cookie(string) string { return "" }
func (h *GRPCHandling) Query(string) string  { return "" }
func (h *GRPCHandling) Flush()               {}
func (h *GRPCHandling) Text(text string) {
	h.text = text
	if h.Stream != nil {
		h.Err = h.Stream.SendMsg(wrapperspb.String(text))
	}
}
