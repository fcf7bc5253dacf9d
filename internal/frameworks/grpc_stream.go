package frameworks

import (
	"context"
	"slices"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/accesslimit/accesslimit/core/adaptertest"
	"github.com/accesslimit/accesslimit/grpclimit"
)

func streamOptions(app adaptertest.App) grpc.ServerOption {
	interceptors := []grpc.StreamServerInterceptor{recoveredStream, beforeStream(app)}
	for _, rules := range app.Use {
		interceptors = append(interceptors, grpclimit.StreamServerInterceptor(app.Limiter, rules...))
	}
	return grpc.ChainStreamInterceptor(interceptors...)
}

// streamHandler runs a route inside its own interceptors.
func streamHandler(route adaptertest.Route) grpc.StreamHandler {
	call := func(_ any, stream grpc.ServerStream) error {
		if err := stream.RecvMsg(new(emptypb.Empty)); err != nil {
			return err
		}
		h := &GRPCHandling{Ctx: stream.Context(), Stream: stream}
		route.Serve(h)
		if h.text == "" && h.Err == nil {
			h.Text("") // a stream of the client's only wants an answer
		}
		return h.Err
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
	defer recoverTo(&err)
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
