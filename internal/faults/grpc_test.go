package faults_test

import (
	"context"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/emptypb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/accesslimit/accesslimit/core/adaptertest"
	"github.com/accesslimit/accesslimit/grpclimit"
)

// serveGRPC makes each route a method. The last word of its path is the method's name, and the
// words before it name the service.
func serveGRPC(room int) serveFunc {
	return func(_ testing.TB, l net.Listener, app adaptertest.App) (stop func()) {
		server := grpcServer(app, grpc.MaxHeaderListSize(uint32(room)))
		go func() { _ = server.Serve(l) }()
		return server.Stop
	}
}

func grpcServer(app adaptertest.App, options ...grpc.ServerOption) *grpc.Server {
	interceptors := []grpc.UnaryServerInterceptor{func(ctx context.Context, req any, _ *grpc.UnaryServerInfo, next grpc.UnaryHandler) (any, error) {
		return next(app.Enter(ctx), req)
	}}
	for _, rules := range app.Use {
		interceptors = append(interceptors, grpclimit.UnaryServerInterceptor(app.Limiter, rules...))
	}
	server := grpc.NewServer(append(options, grpc.ChainUnaryInterceptor(interceptors...))...)
	services := make(map[string]*grpc.ServiceDesc)
	for _, route := range app.Routes {
		service, method, _ := strings.Cut(strings.TrimPrefix(route.Path, "/"), "/")
		if services[service] == nil {
			services[service] = &grpc.ServiceDesc{ServiceName: service, HandlerType: (*any)(nil)}
		}
		services[service].Methods = append(services[service].Methods, grpc.MethodDesc{MethodName: method, Handler: grpcHandler(route)})
	}
	for _, service := range services {
		server.RegisterService(service, struct{}{})
	}
	return server
}

type grpcMethod = func(srv any, ctx context.Context, decode func(any) error, interceptor grpc.UnaryServerInterceptor) (any, error)

// grpcHandler runs a route inside the server's interceptors and the route's own.
func grpcHandler(route adaptertest.Route) grpcMethod {
	call := func(ctx context.Context, _ any) (any, error) {
		var text strings.Builder
		route.Serve(handling{nil, ctx, &text, nil, nil})
		return wrapperspb.String(text.String()), nil
	}
	info := &grpc.UnaryServerInfo{FullMethod: route.Path}
	for _, guard := range slices.Backward(route.Guards) {
		limit, _ := grpclimit.With(guard)
		next := call
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

// grpcClient is a connection of one client.
type grpcClient struct{ *grpc.ClientConn }

func connectGRPC(t testing.TB, dial adaptertest.Dial) adaptertest.Client {
	conn, err := grpc.NewClient("passthrough:///service.test", grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return dial(ctx) }))
	if err != nil {
		t.Fatal(err)
	}
	return grpcClient{conn}
}

// asHTTP maps codes to the corresponding HTTP statuses.
var asHTTP = map[codes.Code]int{
	codes.OK: 200, codes.ResourceExhausted: 429, codes.Unauthenticated: 401, codes.Unavailable: 503, codes.Canceled: 503, codes.DeadlineExceeded: 503,
}

// Do implements adaptertest.Client.
func (c grpcClient) Do(_ testing.TB, call adaptertest.Call) adaptertest.Reply {
	ctx := call.Until()
	for name, values := range call.Header {
		for _, value := range values {
			ctx = metadata.AppendToOutgoingContext(ctx, name, value)
		}
	}
	var trailer metadata.MD
	err := c.Invoke(ctx, call.Path, new(emptypb.Empty), new(wrapperspb.StringValue), grpc.Trailer(&trailer))
	reply := adaptertest.Reply{Status: asHTTP[status.Code(err)], Header: make(http.Header)}
	for name, values := range trailer {
		for _, value := range values {
			reply.Header.Add(name, value)
		}
	}
	return reply
}

// Close implements adaptertest.Client.
func (c grpcClient) Close() { _ = c.ClientConn.Close() }
