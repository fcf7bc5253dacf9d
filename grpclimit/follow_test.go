package grpclimit_test

import (
	"context"
	"testing"

	"google.golang.org/grpc"

	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/grpclimit"
	"github.com/accesslimit/accesslimit/internal/followtest"
)

// With and Allow follow a set of rules, in unary calls and in streams.
func TestRuleSet(t *testing.T) {
	t.Run("unary", func(t *testing.T) {
		followtest.Run(t, func(guard *core.Guard, check *core.Check) func() bool {
			unary, _ := grpclimit.With(guard)
			return func() bool {
				_, err := unary(t.Context(), nil, &grpc.UnaryServerInfo{FullMethod: "/s/m"}, func(ctx context.Context, _ any) (any, error) {
					return nil, grpclimit.Allow(ctx, check, "account:7")
				})
				return err == nil
			}
		})
	})
	t.Run("stream", func(t *testing.T) {
		followtest.Run(t, func(guard *core.Guard, check *core.Check) func() bool {
			_, stream := grpclimit.With(guard)
			return func() bool {
				return nil == stream(nil, calledIn{ctx: t.Context()}, &grpc.StreamServerInfo{FullMethod: "/s/m"}, func(_ any, s grpc.ServerStream) error {
					return grpclimit.Allow(s.Context(), check, "account:7")
				})
			}
		})
	})
}
