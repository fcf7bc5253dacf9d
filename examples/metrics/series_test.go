package main

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/grpclimit"
	"github.com/accesslimit/accesslimit/internal/bounded"
	"github.com/accesslimit/accesslimit/internal/extensiontest"
)

// series counts the series that each path of the example shows, comments left out.
func series(t *testing.T, service http.Handler) map[string]int {
	t.Helper()
	counts := make(map[string]int)
	for _, path := range []string{"/metrics", "/otel"} {
		w := httptest.NewRecorder()
		service.ServeHTTP(w, httptest.NewRequest("GET", path, nil))
		if w.Code != http.StatusOK {
			t.Fatalf("%s: %d %s", path, w.Code, w.Body)
		}
		for line := range strings.Lines(w.Body.String()) {
			if strings.HasPrefix(line, "accesslimit_") {
				counts[path]++
			}
		}
	}
	return counts
}

// Subjects are no labels: a million of them make no series more than two.
func TestSeriesDoNotGrowWithSubjects(t *testing.T) {
	subjects := 50_000
	if os.Getenv("ACCESSLIMIT_LONG") != "" {
		subjects = 1_000_000
	}
	limiter, mux := extensiontest.NewLimiter(t, core.Options{}), http.NewServeMux()
	if err := addMetrics(mux, map[string]*core.Limiter{"a": limiter}); err != nil {
		t.Fatal(err)
	}
	replies, before := limiter.MustCounter("reply", core.PerHour(1)), map[string]int(nil)
	for i := range subjects {
		for range 2 { // one is allowed, and one refused
			if _, err := replies.Allow(context.Background(), fmt.Sprint("user:", i)); err != nil {
				t.Fatal(err)
			}
		}
		if i == 1 {
			before = series(t, mux)
		}
	}
	for path, n := range series(t, mux) {
		if n != before[path] || n < 5 {
			t.Errorf("%s: %d series after two subjects, %d after %d", path, before[path], n, subjects)
		}
	}
}

// The callers of a gRPC proxy make up routes, which have one label together.
func TestSeriesOfMadeUpRoutesAreBounded(t *testing.T) {
	limiter, mux := extensiontest.NewLimiter(t, core.Options{}), http.NewServeMux()
	if err := addMetrics(mux, map[string]*core.Limiter{"a": limiter}); err != nil {
		t.Fatal(err)
	}
	conn := serveProxy(t, limiter)
	call := func(route string) {
		err := conn.Invoke(context.Background(), route, &emptypb.Empty{}, &emptypb.Empty{})
		if code := status.Code(err); code != codes.Unimplemented {
			t.Fatalf("%.50q: %v", route, err)
		}
	}
	call("/made.up/Route")
	one := series(t, mux)
	for i := range 50 {
		call(fmt.Sprint("/made.up/Route", i))
		call("/made.up/" + strings.Repeat("long", 100*i))
		call(fmt.Sprintf("/made.up/\xff%d", i))
	}
	for path, n := range series(t, mux) {
		if n != one[path] || n == 0 {
			t.Errorf("%s: %d series of one route, %d of 150 more", path, one[path], n)
		}
	}
}

// serveProxy starts a gRPC server that answers any route, and connects to it.
func serveProxy(t *testing.T, limiter *core.Limiter) *grpc.ClientConn {
	t.Helper()
	unknown := func(any, grpc.ServerStream) error { return status.Error(codes.Unimplemented, "no such route") }
	proxy := grpc.NewServer(grpc.UnknownServiceHandler(unknown), grpc.StreamInterceptor(grpclimit.StreamServerInterceptor(limiter, core.Rule{Seconds: 3600, MaxCount: 1000})))
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go func() { _ = proxy.Serve(listener) }()
	bounded.Cleanup(t, proxy.Stop)
	conn, err := grpc.NewClient(listener.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	bounded.Cleanup(t, func() { _ = conn.Close() })
	return conn
}
