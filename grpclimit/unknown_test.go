package grpclimit_test

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dunglas/httpsfv"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/grpclimit"
	"github.com/accesslimit/accesslimit/internal/frameworks"
	"github.com/accesslimit/accesslimit/internal/limitertest"
	"github.com/accesslimit/accesslimit/internal/redistest"
)

// TestMethodsOfAnyName tests a proxy, whose callers choose the methods' names. It counts each name
// by itself, under a short key, and shows it in trailers as a structured field, whatever it
// contains.
func TestMethodsOfAnyName(t *testing.T) {
	rdb := redistest.Start(t).Client(t)
	limiter := limitertest.New(t, core.Options{Redis: rdb, Timeout: 20 * time.Second, Logger: slog.New(slog.DiscardHandler)})
	conn := proxied(t, core.Rule{Seconds: 600, MaxCount: 1}, limiter)
	names := []string{
		"/a/b", "/a/B", "/A/b", "/a/b ", "/a/b%20", "/a//b", "/a/b/", `/a"/b`, `/a\/b`, `/"};r=99;t=0, "x/b`, "/}{/b", "/{a}/b", "/a:sw1:1/b",
		"/%7D%7B/b", "/#/b", "/\u00e9/b", "/e\u0301/b", "/\xff/b", "/\xfe/b", "/\ufffd/b", "/a/" + strings.Repeat("b", 64), "/a/" + strings.Repeat("b", 65),
		"/a/" + strings.Repeat("b", 200), "/a/" + strings.Repeat("b", 201), "/a/" + strings.Repeat("}", 900),
	}
	for _, want := range []codes.Code{codes.OK, codes.ResourceExhausted} {
		for _, name := range names {
			trailer, err := callUnknown(t, conn, name)
			if status.Code(err) != want {
				t.Errorf("%.60q: %v, want %v", name, err, want)
			}
			if list, err := httpsfv.UnmarshalList(trailer.Get("ratelimit")); err != nil || len(list) != 1 {
				t.Errorf("%.60q: the trailer %q is no list of one: %v", name, trailer.Get("ratelimit"), err)
			}
		}
	}
	keys, err := rdb.Keys(t.Context(), "*").Result()
	keys = slices.DeleteFunc(keys, func(key string) bool { return strings.HasSuffix(key, ":{%mark0}:mk1") })
	if err != nil || len(keys) != len(names) {
		t.Errorf("there are %d keys, want one for each of %d names: %v", len(keys), len(names), err)
	}
	for _, key := range keys {
		if len(key) > 200 || strings.Count(key, "{") != 1 || strings.Count(key, "}") != 1 || strings.ContainsFunc(key, func(r rune) bool { return r <= ' ' || r > '~' }) {
			t.Errorf("there is the key %q", key)
		}
	}
}

// TestMethodsOfNoName checks that names that no header may contain never reach the limits.
func TestMethodsOfNoName(t *testing.T) {
	limiter := limitertest.New(t, core.Options{Logger: slog.New(slog.DiscardHandler)})
	conn := proxied(t, core.Rule{Seconds: 600, MaxCount: 1}, limiter)
	for _, name := range []string{"/a\r\nx: y/b", "/a\x00/b", "/a\n/b", "/\x7f/b"} {
		if _, err := callUnknown(t, conn, name); err == nil {
			t.Errorf("%q was served", name)
		}
	}
	if decided := limiter.Stats().Decisions; len(decided) != 0 {
		t.Errorf("there were decisions: %+v", decided)
	}
}

// proxied is a connection to a server that serves every method, as a proxy does.
func proxied(t *testing.T, rule core.Rule, limiter *core.Limiter) *grpc.ClientConn {
	t.Helper()
	server := grpc.NewServer(
		grpc.ChainStreamInterceptor(grpclimit.StreamServerInterceptor(limiter, rule)),
		grpc.UnknownServiceHandler(func(any, grpc.ServerStream) error { return nil }))
	addr := started(t, server)
	conn := frameworks.ConnectGRPC(t, func(ctx context.Context) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "tcp", addr)
	})
	t.Cleanup(func() { _ = conn.Close() })
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
