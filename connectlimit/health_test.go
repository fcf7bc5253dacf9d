package connectlimit_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"sync/atomic"
	"testing"

	"connectrpc.com/connect"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/accesslimit/accesslimit/connectlimit"
	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/internal/bounded"
	"github.com/accesslimit/accesslimit/internal/extensiontest"
	"github.com/accesslimit/accesslimit/nethttplimit"
)

type (
	request  = grpc_health_v1.HealthCheckRequest
	response = grpc_health_v1.HealthCheckResponse
)

// health is the standard health service, whose Watch sends three messages.
func health(options ...connect.HandlerOption) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("/grpc.health.v1.Health/Check", connect.NewUnaryHandlerSimple("/grpc.health.v1.Health/Check", func(context.Context, *request) (*response, error) {
		return new(response), nil
	}, options...))
	mux.Handle("/grpc.health.v1.Health/Watch", connect.NewServerStreamHandlerSimple("/grpc.health.v1.Health/Watch", func(_ context.Context, _ *request, stream *connect.ServerStream[response]) error {
		for range 3 {
			if err := stream.Send(new(response)); err != nil {
				return err
			}
		}
		return nil
	}, options...))
	return mux
}

// dial serves a handler, and connects to it with the client of grpc-go, which would retry.
func dial(t *testing.T, handler http.Handler) *grpc.ClientConn {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	logged := make(lines, 100)
	stop := serveHTTP(l, log.New(logged, "", 0), handler)
	conn, err := grpc.NewClient(l.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithDefaultServiceConfig(
		`{"methodConfig": [{"name": [{}], "retryPolicy": {"maxAttempts": 5, "initialBackoff": "0.001s",
		"maxBackoff": "0.001s", "backoffMultiplier": 1, "retryableStatusCodes": ["RESOURCE_EXHAUSTED", "UNAUTHENTICATED"]}}]}`))
	if err != nil {
		t.Fatal(err)
	}
	bounded.Cleanup(t, func() {
		_ = conn.Close()
		stop()
		if len(logged) > 0 {
			t.Errorf("net/http logged %s", <-logged)
		}
	})
	return conn
}

// lines are those of a log.
type lines chan string

// Write implements io.Writer.
func (l lines) Write(line []byte) (int, error) {
	l <- string(line)
	return len(line), nil
}

// call makes one call of Check or Watch, and returns how many messages came.
func call(t *testing.T, conn *grpc.ClientConn, method string) (messages int, trailer metadata.MD, err error) {
	t.Helper()
	client := grpc_health_v1.NewHealthClient(conn)
	if method == "Check" {
		_, err = client.Check(t.Context(), new(request), grpc.Trailer(&trailer))
		return 1, trailer, err
	}
	stream, err := client.Watch(t.Context(), new(request))
	if err != nil {
		t.Fatal(err)
	}
	for {
		if _, err = stream.Recv(); errors.Is(err, io.EOF) {
			return messages, stream.Trailer(), nil
		} else if err != nil {
			return messages, stream.Trailer(), err
		}
		messages++
	}
}

// TestGRPCClients checks what the client of grpc-go gets, and that it does not retry. A stream is
// charged when it opens, however many messages go through it.
func TestGRPCClients(t *testing.T) {
	for _, method := range []string{"Check", "Watch"} {
		var attempts atomic.Int32
		rule := core.Rule{Seconds: 3600, MaxCount: 2, Cost: func(core.Request) int { attempts.Add(1); return 1 }}
		conn := dial(t, health(connect.WithInterceptors(connectlimit.New(extensiontest.NewLimiter(t, core.Options{}), rule))))
		for _, left := range []int{1, 0} {
			want := fmt.Sprintf(`"/grpc.health.v1.Health/%s";r=%d;t=`, method, left)
			if _, trailer, err := call(t, conn, method); err != nil || len(trailer["ratelimit"]) != 1 || trailer["ratelimit"][0][:len(want)] != want {
				t.Errorf("%s: %v, and the trailer %q, want %s", method, err, trailer["ratelimit"], want)
			}
		}
		_, trailer, err := call(t, conn, method)
		if status.Code(err) != codes.ResourceExhausted || len(status.Convert(err).Details()) != 2 {
			t.Errorf("%s: %v with details %v, want RESOURCE_EXHAUSTED with RetryInfo and QuotaFailure", method, err, status.Convert(err).Details())
		}
		if got := trailer["grpc-retry-pushback-ms"]; len(got) != 1 || got[0] != "-1" {
			t.Errorf("%s: the pushback is %q, want -1", method, got)
		}
		if len(trailer["retry-after"]) != 1 {
			t.Errorf("%s: the trailers are %v, want retry-after", method, trailer)
		}
		if attempts.Load() != 3 {
			t.Errorf("%s: the server saw %d attempts of 3 calls", method, attempts.Load())
		}
	}
}

// TestTrailersOfHTTP checks that net/http does not log trailers that it cannot send, such as those
// of a caller who must log in.
func TestTrailersOfHTTP(t *testing.T) {
	limiter := extensiontest.NewLimiter(t, core.Options{Identify: core.BearerToken(nobody)})
	conn := dial(t, health(connect.WithInterceptors(connectlimit.New(limiter, core.Rule{Seconds: 60, NeedLogin: true}))))
	for _, method := range []string{"Check", "Watch"} {
		if _, _, err := call(t, conn, method); status.Code(err) != codes.Unauthenticated {
			t.Errorf("%s: %v, want UNAUTHENTICATED", method, err)
		}
	}
}

func nobody(context.Context, string) (string, error) { return "", nil }

// TestBehindNethttplimit checks what the package comment says of nethttplimit.
func TestBehindNethttplimit(t *testing.T) {
	limit := nethttplimit.New(extensiontest.NewLimiter(t, core.Options{}), core.Rule{Name: "all", Seconds: 600, MaxCount: 1})
	conn := dial(t, limit(health()))
	for _, want := range []codes.Code{codes.OK, codes.Unavailable} {
		if _, _, err := call(t, conn, "Check"); status.Code(err) != want {
			t.Errorf("%v, want %v", err, want)
		}
	}
}
