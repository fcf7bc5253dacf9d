package grpclimit_test

import (
	"context"
	"net"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"

	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/grpclimit"
	"github.com/accesslimit/accesslimit/internal/handlercost"
	"github.com/accesslimit/accesslimit/internal/limitertest"
)

// BenchmarkMiddleware measures a call of the handler, with and without the interceptor, which sends
// its trailer.
func BenchmarkMiddleware(b *testing.B) { handlercost.Benchmark(b, measured(b), "/bare", "/limited") }

// The allocations are the view with the lines of the trailer, and the two that a map needs.
func TestAllocations(t *testing.T) { handlercost.WantAllocs(t, measured(t), 3) }

// measured returns the calls of a handler that does nothing, and of the interceptor around it.
func measured(t testing.TB) handlercost.Caller {
	limiter := limitertest.New(t, core.Options{})
	limit := grpclimit.UnaryServerInterceptor(limiter, core.Rule{Name: "api", Limit: core.PerSecond(1e9).Bucket(0)})
	handler := func(context.Context, any) (any, error) { return nil, nil }
	info := &grpc.UnaryServerInfo{FullMethod: "/shop/list"}
	ctx := onStream(peer.NewContext(context.Background(), &peer.Peer{Addr: &net.TCPAddr{IP: net.IPv4(192, 0, 2, 1), Port: 1}}))
	return func(path string) func() {
		if path == "/bare" {
			return func() { _, _ = handler(ctx, nil) }
		}
		return func() { _, _ = limit(ctx, nil, info, handler) }
	}
}

// onStream is a context of a call, which keeps no trailer.
func onStream(ctx context.Context) context.Context {
	return grpc.NewContextWithServerTransportStream(ctx, noTrailer{})
}

type noTrailer struct{}

func (noTrailer) Method() string               { return "/shop/list" }
func (noTrailer) SetHeader(metadata.MD) error  { return nil }
func (noTrailer) SendHeader(metadata.MD) error { return nil }
func (noTrailer) SetTrailer(metadata.MD) error { return nil }
