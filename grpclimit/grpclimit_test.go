package grpclimit_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/accesslimit/accesslimit/core/adaptertest"
	"github.com/accesslimit/accesslimit/internal/frameworks"
	"github.com/accesslimit/accesslimit/internal/leakcheck"
)

func TestAdapter(t *testing.T) {
	adapter := frameworks.GRPC(grpc.StreamDesc{})
	adapter.Endings = endings
	adaptertest.Run(t, adapter)
}

// endings are the ways for an RPC to end. An error without a status gets one on the wire.
var endings = []adaptertest.Ending{
	ending("a status", codes.AlreadyExists, func(*frameworks.GRPCHandling) error { return status.Error(codes.AlreadyExists, "twice") }),
	ending("a wrapped status", codes.PermissionDenied, func(*frameworks.GRPCHandling) error {
		return fmt.Errorf("asked: %w", status.Error(codes.PermissionDenied, "no"))
	}),
	ending("a plain error", codes.Unknown, func(*frameworks.GRPCHandling) error { return errors.New("broken") }),
	ending("a plain deadline", codes.DeadlineExceeded, func(*frameworks.GRPCHandling) error { return context.DeadlineExceeded }),
	ending("a wrapped deadline", codes.DeadlineExceeded, func(*frameworks.GRPCHandling) error { return fmt.Errorf("asked: %w", context.DeadlineExceeded) }),
	ending("a plain cancellation", codes.Canceled, func(*frameworks.GRPCHandling) error { return context.Canceled }),
	ending("status OK as an error", codes.OK, func(*frameworks.GRPCHandling) error { return status.Error(codes.OK, "is none") }),
	ending("a code of its own", codes.Code(42), func(*frameworks.GRPCHandling) error { return status.Error(42, "of its own") }),
}

func ending(name string, code codes.Code, handle func(*frameworks.GRPCHandling) error) adaptertest.Ending {
	return adaptertest.Ending{Name: name, Outcome: int(code), Handle: func(h adaptertest.Handling) {
		h.(*frameworks.GRPCHandling).Err = handle(h.(*frameworks.GRPCHandling))
	}}
}

func TestMain(m *testing.M) { leakcheck.Main(m) }
