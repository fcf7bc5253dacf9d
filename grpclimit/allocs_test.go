//go:build !race

package grpclimit_test

import (
	"context"
	"testing"

	"google.golang.org/grpc"

	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/grpclimit"
	"github.com/accesslimit/accesslimit/internal/limitertest"
)

// The race detector makes sync.Pool forget at random, so allocations are counted without it.

// TestAllocations checks the allocations that the interceptor adds to an allowed call: the view
// with the lines of the trailer, and the two that a map needs.
func TestAllocations(t *testing.T) {
	limiter := limitertest.New(t, core.Options{})
	limit := grpclimit.UnaryServerInterceptor(limiter, core.Rule{Name: "api", Seconds: 1, MaxCount: 1e9})
	handler := func(context.Context, any) (any, error) { return nil, nil }
	info := &grpc.UnaryServerInfo{FullMethod: "/shop/list"}
	ctx := onStream(context.Background())
	allocs := testing.AllocsPerRun(1000, func() { _, _ = limit(ctx, nil, info, handler) })
	if allocs > 3 {
		t.Errorf("%v allocations, want at most 3", allocs)
	}
}
