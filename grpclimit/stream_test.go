package grpclimit_test

import (
	"context"
	"io"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/reflection"
	"google.golang.org/grpc/reflection/grpc_reflection_v1"
	"google.golang.org/grpc/status"

	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/grpclimit"
	"github.com/accesslimit/accesslimit/internal/bounded"
	"github.com/accesslimit/accesslimit/internal/limitertest"
)

const check = "/grpc.health.v1.Health/Check"

// serveHealth serves the standard health and reflection services under rules, and connects to them.
func serveHealth(t *testing.T, options []grpc.DialOption, rules ...core.Rule) *grpc.ClientConn {
	t.Helper()
	limiter := limitertest.New(t, core.Options{})
	server := grpc.NewServer(
		grpc.ChainUnaryInterceptor(grpclimit.UnaryServerInterceptor(limiter, rules...)),
		grpc.ChainStreamInterceptor(grpclimit.StreamServerInterceptor(limiter, rules...)),
	)
	grpc_health_v1.RegisterHealthServer(server, health.NewServer())
	reflection.Register(server)
	conn, err := grpc.NewClient(started(t, server), append(options, grpc.WithTransportCredentials(insecure.NewCredentials()))...)
	if err != nil {
		t.Fatal(err)
	}
	bounded.Cleanup(t, func() { _ = conn.Close() })
	return conn
}

func ask(stream grpc_reflection_v1.ServerReflection_ServerReflectionInfoClient) error {
	request := &grpc_reflection_v1.ServerReflectionRequest{
		MessageRequest: &grpc_reflection_v1.ServerReflectionRequest_ListServices{},
	}
	if err := stream.Send(request); err != nil && err != io.EOF { // which says that Recv knows why
		return err
	}
	_, err := stream.Recv()
	return err
}

// TestRetryingClientWaitsAndPasses checks that gRPC's own retry policy, with our pushback, tries
// again when a permit is there.
func TestRetryingClientWaitsAndPasses(t *testing.T) {
	var attempts atomic.Int32
	config := `{"methodConfig": [{"name": [{"service": "grpc.health.v1.Health"}], "retryPolicy": {
		"maxAttempts": 4, "initialBackoff": "3600s", "maxBackoff": "3600s", "backoffMultiplier": 1, "retryableStatusCodes": ["RESOURCE_EXHAUSTED"]}}]}`
	rule := core.Rule{
		Limit: core.Limit{Max: 1, Window: 300 * time.Millisecond}.Fixed(),
		Cost: func(core.Request) int {
			attempts.Add(1)
			return 1
		},
	}
	conn := serveHealth(t, []grpc.DialOption{grpc.WithDefaultServiceConfig(config)}, rule)
	client := grpc_health_v1.NewHealthClient(conn)
	// Without pushback the client would wait an hour.
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	calls := int32(0)
	for attempts.Load() == calls { // until one was refused
		if _, err := client.Check(ctx, nil); err != nil {
			t.Fatalf("after %d calls: %v", calls, err)
		}
		calls++
	}
	if n := attempts.Load(); n != calls+1 {
		t.Errorf("the server saw %d attempts of %d calls, want one refused, and its retry", n, calls)
	}
}

// TestRetryingClientDoesNotRetryLongWaits checks that gRPC's own retry policy does not call
// again at once if the wait is long or would not help.
func TestRetryingClientDoesNotRetryLongWaits(t *testing.T) {
	const config = `{"methodConfig": [{"name": [{}], "retryPolicy": {"maxAttempts": 5, "initialBackoff": "0.001s",
		"maxBackoff": "0.001s", "backoffMultiplier": 1, "retryableStatusCodes": ["RESOURCE_EXHAUSTED", "INVALID_ARGUMENT"]}}]}`
	for _, test := range []struct {
		code    codes.Code
		cost    int
		details int // RetryInfo and QuotaFailure, or none
	}{{codes.ResourceExhausted, 1, 2}, {codes.InvalidArgument, 2, 0}} {
		for _, kind := range []string{"unary", "stream"} {
			var attempts atomic.Int32
			rule := core.Rule{Name: "long", Seconds: 3600, MaxCount: 1, Key: core.Global, Cost: func(core.Request) int {
				if attempts.Add(1) == 1 {
					return 1
				}
				return test.cost
			}}
			conn := serveHealth(t, []grpc.DialOption{grpc.WithDefaultServiceConfig(config)}, rule)
			if _, err := grpc_health_v1.NewHealthClient(conn).Check(t.Context(), nil); err != nil {
				t.Fatal(err)
			}
			trailer, err := callOnce(t.Context(), conn, kind)
			if status.Code(err) != test.code || len(status.Convert(err).Details()) != test.details {
				t.Errorf("%s: %v with details %v, want %v and %d", kind, err, status.Convert(err).Details(), test.code, test.details)
			}
			if got := trailer["grpc-retry-pushback-ms"]; len(got) != 1 || got[0] != "-1" {
				t.Errorf("%s: the pushback of %v is %q, want -1", kind, test.code, got)
			}
			if n := attempts.Load() - 1; n != 1 {
				t.Errorf("%s: the client tried %d times against %v, want once", kind, n, test.code)
			}
		}
	}
}

// callOnce makes one call of the client, and returns its result.
func callOnce(ctx context.Context, conn *grpc.ClientConn, kind string) (trailer metadata.MD, err error) {
	if kind == "unary" {
		_, err = grpc_health_v1.NewHealthClient(conn).Check(ctx, nil, grpc.Trailer(&trailer))
		return trailer, err
	}
	stream, err := grpc_reflection_v1.NewServerReflectionClient(conn).ServerReflectionInfo(ctx)
	if err != nil {
		return nil, err
	}
	err = ask(stream)
	return stream.Trailer(), err
}

// TestReplyIsForHTTP checks that an owner's Reply, which changes refusals in HTTP, does not change
// a gRPC refusal.
func TestReplyIsForHTTP(t *testing.T) {
	limiter := limitertest.New(t, core.Options{Reply: func(core.Request, core.Refusal) core.Refusal {
		return core.Refusal{Status: 200, Body: []byte("slow down")}
	}})
	limit := grpclimit.UnaryServerInterceptor(limiter, core.Rule{Seconds: 600, MaxCount: 1})
	ran := 0
	handler := func(context.Context, any) (any, error) { ran++; return nil, nil }
	for _, want := range []codes.Code{codes.OK, codes.ResourceExhausted} {
		if _, err := limit(t.Context(), nil, &grpc.UnaryServerInfo{FullMethod: check}, handler); status.Code(err) != want {
			t.Errorf("got %v, want %v", err, want)
		}
	}
	if ran != 1 {
		t.Errorf("the handler ran %d times, want once", ran)
	}
}
