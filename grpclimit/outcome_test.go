package grpclimit_test

import (
	"context"
	"errors"
	"fmt"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/accesslimit/accesslimit/core/adaptertest"
)

// endings are the ways for an RPC to end. An error without a status gets one on the wire.
var endings = []adaptertest.Ending{
	ending("a status", codes.AlreadyExists, func(*handling) error { return status.Error(codes.AlreadyExists, "twice") }),
	ending("a wrapped status", codes.PermissionDenied, func(*handling) error {
		return fmt.Errorf("asked: %w", status.Error(codes.PermissionDenied, "no"))
	}),
	ending("a plain error", codes.Unknown, func(*handling) error { return errors.New("broken") }),
	ending("a plain deadline", codes.DeadlineExceeded, func(*handling) error { return context.DeadlineExceeded }),
	ending("a wrapped deadline", codes.DeadlineExceeded, func(*handling) error { return fmt.Errorf("asked: %w", context.DeadlineExceeded) }),
	ending("a plain cancellation", codes.Canceled, func(*handling) error { return context.Canceled }),
	ending("status OK as an error", codes.OK, func(*handling) error { return status.Error(codes.OK, "is none") }),
	ending("a code of its own", codes.Code(42), func(*handling) error { return status.Error(42, "of its own") }),
}

func ending(name string, code codes.Code, handle func(*handling) error) adaptertest.Ending {
	return adaptertest.Ending{Name: name, Outcome: int(code), Handle: func(h adaptertest.Handling) {
		h.(*handling).err = handle(h.(*handling))
	}}
}
