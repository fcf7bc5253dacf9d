package grpclimit_test

import (
	"context"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/grpclimit"
)

// TestWith checks that both interceptors of With use one guard: a stream is refused after a unary
// call has used up the limit.
func TestWith(t *testing.T) {
	limiter, err := core.New(core.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer limiter.Close()
	guard := limiter.MustGuard(core.Rule{Name: "api", Seconds: 3600, MaxCount: 1})
	unary, stream := grpclimit.With(guard)
	ran := 0
	_, err = unary(t.Context(), nil, &grpc.UnaryServerInfo{FullMethod: "/s/m"}, func(context.Context, any) (any, error) { ran++; return nil, nil })
	if err != nil || ran != 1 {
		t.Fatalf("%v, and the handler ran %d times", err, ran)
	}
	err = stream(nil, calledIn{ctx: t.Context()}, &grpc.StreamServerInfo{FullMethod: "/s/stream"}, func(any, grpc.ServerStream) error { ran++; return nil })
	if status.Code(err) != codes.ResourceExhausted || ran != 1 {
		t.Errorf("%v, and the handlers ran %d times", err, ran)
	}
	if changed, err := guard.Reset(t.Context(), "ip:unknown"); err != nil || !changed {
		t.Errorf("%v, %v", changed, err)
	}
}

type calledIn struct {
	grpc.ServerStream
	ctx context.Context
}

func (s calledIn) Context() context.Context { return s.ctx }
