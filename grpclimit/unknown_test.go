package grpclimit_test

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"strings"
	"testing"

	"github.com/dunglas/httpsfv"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/grpclimit"
	"github.com/accesslimit/accesslimit/internal/bounded"
	"github.com/accesslimit/accesslimit/internal/frameworks"
	"github.com/accesslimit/accesslimit/internal/limitertest"
)

// Methods that the server does not know share one counter, in an interceptor and in a handler, so
// that made-up names are no way around a limit. A rule may still match them by its Paths.
func TestMethodsOfAnyName(t *testing.T) {
	limiter := limitertest.New(t, core.Options{})
	limit := grpclimit.StreamServerInterceptor(limiter,
		core.Rule{Seconds: 600, MaxCount: 3}, core.Rule{Name: "a", Seconds: 600, MaxCount: 1, Paths: []string{"/a/**"}})
	check := limiter.MustCheck(core.Rule{Seconds: 600, MaxCount: 2})
	conn := proxied(t, limit, func(_ any, stream grpc.ServerStream) error { return grpclimit.Allow(stream.Context(), check, "s") })
	for _, call := range []struct {
		method string
		want   codes.Code
	}{
		{"/a/b", codes.OK}, {"/a/B", codes.ResourceExhausted}, {"/\xff/b", codes.OK}, {"/e/" + strings.Repeat("}", 900), codes.ResourceExhausted},
		{"/\u00e9/b", codes.ResourceExhausted},
	} {
		trailer, err := callUnknown(t, conn, call.method)
		if status.Code(err) != call.want {
			t.Errorf("%.60q: %v, want %v", call.method, err, call.want)
		}
		if list, err := httpsfv.UnmarshalList(trailer.Get("ratelimit")); err != nil || len(list) == 0 {
			t.Errorf("%.60q: the trailer %q is no list: %v", call.method, trailer.Get("ratelimit"), err)
		}
	}
	for _, d := range limiter.Stats().Decisions {
		if d.Rule != "(no route)" && d.Rule != "a" {
			t.Errorf("Stats shows the name %q", d.Rule)
		}
	}
}

// TestMethodsOfNoName checks that names that no header may contain never reach the limits.
func TestMethodsOfNoName(t *testing.T) {
	limiter := limitertest.New(t, core.Options{Logger: slog.New(slog.DiscardHandler)})
	limit := grpclimit.StreamServerInterceptor(limiter, core.Rule{Seconds: 600, MaxCount: 1})
	conn := proxied(t, limit, func(any, grpc.ServerStream) error { return nil })
	for _, name := range []string{"/a\r\nx: y/b", "/a\x00/b", "/a\n/b", "/\x7f/b"} {
		if _, err := callUnknown(t, conn, name); err == nil {
			t.Errorf("%q was served", name)
		}
	}
	if decided := limiter.Stats().Decisions; len(decided) != 0 {
		t.Errorf("there were decisions: %+v", decided)
	}
}

// proxied is a connection to a server that serves every method by one handler, as a proxy does.
func proxied(t *testing.T, limit grpc.StreamServerInterceptor, handler grpc.StreamHandler) *grpc.ClientConn {
	t.Helper()
	server := grpc.NewServer(grpc.ChainStreamInterceptor(limit), grpc.UnknownServiceHandler(handler))
	addr := started(t, server)
	conn := frameworks.ConnectGRPC(t, func(ctx context.Context) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "tcp", addr)
	})
	bounded.Cleanup(t, func() { _ = conn.Close() })
	return conn
}

// callUnknown calls a method as a stream without messages.
func callUnknown(t *testing.T, conn *grpc.ClientConn, method string) (metadata.MD, error) {
	t.Helper()
	stream, err := conn.NewStream(t.Context(), &grpc.StreamDesc{ServerStreams: true}, method)
	if err != nil {
		return nil, err
	}
	_ = stream.CloseSend()
	if err = stream.RecvMsg(new([]byte)); err == io.EOF {
		err = nil
	} else if err == nil {
		err = fmt.Errorf("%q was answered by a message", method)
	}
	return stream.Trailer(), err
}

// keeper is a call whose transport keeps the trailers unchanged.
type keeper struct {
	noTrailer
	kept []metadata.MD
}

func (k *keeper) SetTrailer(md metadata.MD) error {
	k.kept = append(k.kept, md)
	return nil
}

// The trailers of a call stay its own: the next call does not overwrite them.
func TestTrailersAreTheCallsOwn(t *testing.T) {
	limiter := limitertest.New(t, core.Options{})
	long := strings.Repeat("n", 120)
	for _, name := range []string{"api", long} {
		limit := grpclimit.UnaryServerInterceptor(limiter, core.Rule{Name: name, Limit: core.PerMinute(3).Fixed()})
		stream := new(keeper)
		ctx := grpc.NewContextWithServerTransportStream(context.Background(), stream)
		handler := func(context.Context, any) (any, error) { return nil, nil }
		for range 4 {
			_, _ = limit(ctx, nil, &grpc.UnaryServerInfo{FullMethod: "/shop/list"}, handler)
		}
		if len(stream.kept) != 4 {
			t.Fatalf("%d trailers of 4 calls", len(stream.kept))
		}
		for i, left := range []int{2, 1, 0, 0} {
			md := stream.kept[i]
			want := fmt.Sprintf(`"%s";r=%d;t=60`, name, left)
			if got := md["ratelimit"]; len(got) != 1 || got[0] != want {
				t.Errorf("call %d: %q, want %s", i, got, want)
			}
			if got, want := md["ratelimit-policy"], fmt.Sprintf(`"%s";q=3;w=60`, name); len(got) != 1 || got[0] != want {
				t.Errorf("call %d: %q, want %s", i, got, want)
			}
		}
	}
}
