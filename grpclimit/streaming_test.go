package grpclimit_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/accesslimit/accesslimit/core/adaptertest"
	"github.com/accesslimit/accesslimit/grpclimit"
)

// TestStreams runs all tests of unary calls with streams.
func TestStreams(t *testing.T) {
	for name, kind := range map[string]grpc.StreamDesc{
		"server": {ServerStreams: true}, "client": {ClientStreams: true}, "both": {ServerStreams: true, ClientStreams: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel() // most of it is waiting
			adaptertest.RunInProcess(t, adaptertest.Adapter{
				Serve: serveStreams(kind), Connect: connectTo(stream(kind)), RPC: true, Endings: streamEndings(kind),
			})
		})
	}
}

// serveStreams is like serve, but makes a stream of each route.
func serveStreams(kind grpc.StreamDesc) func(testing.TB, net.Listener, adaptertest.App) (stop func()) {
	return func(_ testing.TB, l net.Listener, app adaptertest.App) (stop func()) {
		interceptors := []grpc.StreamServerInterceptor{recoveredStream, beforeStream(app)}
		for _, rules := range app.Use {
			interceptors = append(interceptors, grpclimit.StreamServerInterceptor(app.Limiter, rules...))
		}
		server := grpc.NewServer(grpc.ChainStreamInterceptor(interceptors...))
		services := make(map[string]*grpc.ServiceDesc)
		for _, route := range app.Routes {
			service, method, _ := strings.Cut(strings.TrimPrefix(route.Path, "/"), "/")
			if services[service] == nil {
				services[service] = &grpc.ServiceDesc{ServiceName: service, HandlerType: (*any)(nil)}
			}
			desc := kind
			desc.StreamName, desc.Handler = method, streamHandler(route)
			services[service].Streams = append(services[service].Streams, desc)
		}
		for _, service := range services {
			server.RegisterService(service, struct{}{})
		}
		go func() { _ = server.Serve(l) }()
		return server.Stop
	}
}

// streamHandler runs a route inside its own interceptors.
func streamHandler(route adaptertest.Route) grpc.StreamHandler {
	call := func(_ any, stream grpc.ServerStream) error {
		if err := stream.RecvMsg(new(emptypb.Empty)); err != nil {
			return err
		}
		h := &handling{ctx: stream.Context(), stream: stream}
		route.Serve(h)
		if h.text == "" && h.err == nil {
			h.Text("") // a stream of the client's only wants an answer
		}
		return h.err
	}
	if route.Recovers {
		next := call
		call = func(srv any, stream grpc.ServerStream) error { return recoveredStream(srv, stream, nil, next) }
	}
	info := &grpc.StreamServerInfo{FullMethod: route.Path}
	for _, guard := range slices.Backward(route.Guards) {
		_, stream := grpclimit.With(guard)
		next := call
		call = func(srv any, s grpc.ServerStream) error { return stream(srv, s, info, next) }
	}
	return call
}

func recoveredStream(srv any, stream grpc.ServerStream, _ *grpc.StreamServerInfo, next grpc.StreamHandler) (err error) {
	defer func() {
		if caught := recover(); caught != nil {
			err = status.Error(codes.Internal, fmt.Sprint(caught))
		}
	}()
	return next(srv, stream)
}

func beforeStream(app adaptertest.App) grpc.StreamServerInterceptor {
	return func(srv any, stream grpc.ServerStream, _ *grpc.StreamServerInfo, next grpc.StreamHandler) error {
		return next(srv, entered{stream, app.Enter(stream.Context())})
	}
}

// entered is a stream whose context a middleware in front has replaced.
type entered struct {
	grpc.ServerStream
	ctx context.Context
}

func (e entered) Context() context.Context { return e.ctx }

// streamEndings are those of unary calls, and what only streams can do.
func streamEndings(kind grpc.StreamDesc) []adaptertest.Ending {
	all := append([]adaptertest.Ending(nil), endings...)
	if kind.ServerStreams {
		all = append(all, ending("messages, then an error", codes.DataLoss, func(h *handling) error {
			for range 3 {
				h.Text("part")
			}
			return status.Error(codes.DataLoss, "the rest is gone")
		}))
	}
	return append(all, ending("io.EOF returned", codes.Unknown, func(h *handling) error {
		if err := h.stream.RecvMsg(new(emptypb.Empty)); !errors.Is(err, io.EOF) {
			return nil
		}
		return io.EOF
	}))
}
