package grpclimit_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"

	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/grpclimit"
	"github.com/accesslimit/accesslimit/internal/limitertest"
)

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
