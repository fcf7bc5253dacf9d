//go:build !race

package grpclimit_test

import (
	"context"
	"testing"

	"google.golang.org/grpc"

	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/grpclimit"
)

// The race detector makes sync.Pool forget at random, so allocations are counted without it.

// TestAllocations holds what the interceptor adds to an allowed call outside a server: the view, the value of ratelimit, and
// the trailer with its two entries.
func TestAllocations(t *testing.T) {
	limiter, err := core.New(core.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer limiter.Close()
	limit := grpclimit.UnaryServerInterceptor(limiter, core.Rule{Name: "api", Seconds: 1, MaxCount: 1e9})
	handler := func(context.Context, any) (any, error) { return nil, nil }
	info := &grpc.UnaryServerInfo{FullMethod: "/shop/list"}
	allocs := testing.AllocsPerRun(1000, func() { _, _ = limit(context.Background(), nil, info, handler) })
	if allocs > 12 {
		t.Errorf("%v allocations, want at most 12", allocs)
	}
}
