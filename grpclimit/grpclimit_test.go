package grpclimit_test

import (
	"context"
	"errors"
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
	"github.com/accesslimit/accesslimit/internal/leakcheck"
)

func TestAdapter(t *testing.T) {
	adaptertest.Run(t, adaptertest.Adapter{Serve: serve, Connect: connectTo(unary), RPC: true, Endings: endings})
}

// status2error maps HTTP statuses to the errors that stand for them.
var status2error = map[int]error{
	401: status.Error(codes.Unauthenticated, "replied"), 404: status.Error(codes.NotFound, "replied"), 500: status.Error(codes.Internal, "replied"),
}

// serve makes a service of the first word of each path, and a method of the second.
func serve(_ testing.TB, l net.Listener, app adaptertest.App) (stop func()) {
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
		services[service].Methods = append(services[service].Methods, grpc.MethodDesc{MethodName: method, Handler: handler(route)})
	}
	for _, service := range services {
		server.RegisterService(service, struct{}{})
	}
	go func() { _ = server.Serve(l) }()
	return server.Stop
}

type methodHandler = func(srv any, ctx context.Context, decode func(any) error, interceptor grpc.UnaryServerInterceptor) (any, error)

// handler runs a route inside the server's interceptors and the route's own.
func handler(route adaptertest.Route) methodHandler {
	call := func(ctx context.Context, _ any) (any, error) {
		h := &handling{ctx: ctx}
		route.Serve(h)
		return wrapperspb.String(h.text), h.err
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

func recovered(ctx context.Context, req any, _ *grpc.UnaryServerInfo, next grpc.UnaryHandler) (reply any, err error) {
	defer func() {
		if caught := recover(); caught != nil {
			err = status.Error(codes.Internal, fmt.Sprint(caught))
		}
	}()
	return next(ctx, req)
}

func before(app adaptertest.App) grpc.UnaryServerInterceptor {
	return func(ctx context.Context, req any, _ *grpc.UnaryServerInfo, next grpc.UnaryHandler) (any, error) {
		return next(app.Enter(ctx), req)
	}
}

type handling struct {
	ctx    context.Context
	stream grpc.ServerStream // of a streaming call
	text   string
	err    error // what the handler returns
}

func (h *handling) Context() context.Context { return h.ctx }
func (h *handling) Reply(status int)         { h.err = status2error[status] }
func (h *handling) Allow(check *core.Check, subject string) bool {
	h.err = grpclimit.Allow(h.ctx, check, subject)
	return h.err == nil
}
func (h *handling) OwnLimits(guard *core.Guard) {
	limits, err := grpclimit.OwnLimits(h.ctx, guard)
	if h.err = err; err != nil {
		return
	}
	h.Text(adaptertest.OwnLimitsText(limits))
}
func (h *handling) Header(name string) string {
	md, _ := metadata.FromIncomingContext(h.ctx)
	if values := md.Get(name); len(values) > 0 {
		return values[0]
	}
	return ""
}
func (h *handling) Cookie(string) string { return "" }
func (h *handling) Query(string) string  { return "" }
func (h *handling) Flush()               {}
func (h *handling) Text(text string) {
	h.text = text
	if h.stream != nil {
		h.err = h.stream.SendMsg(wrapperspb.String(text))
	}
}

// endings are the ways for an RPC to end. An error without a status gets one on the wire.
var endings = []adaptertest.Ending{
	ending("a status", codes.AlreadyExists, func(*handling) error { return status.Error(codes.AlreadyExists, "twice") }),
	ending("a wrapped status", codes.PermissionDenied, func(*handling) error {
		return fmt.Errorf("asked: %w", status.Error(codes.PermissionDenied, "no"))
	}),
	ending("a plain error", codes.Unknown, func(*handling) error { return errors.New("broken") }),
	ending("a plain deadline", codes.DeadlineExceeded, func(*handling) error { return context.DeadlineExceeded }),
	ending("a wrapped deadline", codes.DeadlineExceeded, func(*handling) error { return fmt.Errorf("asked: %w", context.DeadlineExceeded) }),
	ending("a plain cancellation", codes.Canceled, func(*handling) error { return context.Canceled }),
	ending("status OK as an error", codes.OK, func(*handling) error { return status.Error(codes.OK, "is none") }),
	ending("a code of its own", codes.Code(42), func(*handling) error { return status.Error(42, "of its own") }),
}

func ending(name string, code codes.Code, handle func(*handling) error) adaptertest.Ending {
	return adaptertest.Ending{Name: name, Outcome: int(code), Handle: func(h adaptertest.Handling) {
		h.(*handling).err = handle(h.(*handling))
	}}
}

func TestMain(m *testing.M) { leakcheck.Main(m) }
