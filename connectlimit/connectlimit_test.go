package connectlimit_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"syscall"
	"testing"

	"connectrpc.com/connect"

	"github.com/accesslimit/accesslimit/core/adaptertest"
)

func TestAdapter(t *testing.T) {
	adaptertest.Run(t, adaptertest.Adapter{Serve: serve(connect.StreamTypeUnary), Connect: connectTo(connect.StreamTypeUnary), RPC: true, Endings: endings})
}

// TestProtocols runs the scenarios in the other protocols, and with streams.
func TestProtocols(t *testing.T) {
	for _, protocol := range []struct {
		name    string
		kind    connect.StreamType
		options []connect.ClientOption
	}{
		{"Connect by GET", connect.StreamTypeUnary, []connect.ClientOption{connect.WithHTTPGet(), connect.WithIdempotency(connect.IdempotencyNoSideEffects)}},
		{"gRPC", connect.StreamTypeUnary, []connect.ClientOption{connect.WithGRPC()}},
		{"gRPC-Web", connect.StreamTypeUnary, []connect.ClientOption{connect.WithGRPCWeb()}},
		{"Connect, the server streams", connect.StreamTypeServer, nil},
		{"gRPC-Web, the client streams", connect.StreamTypeClient, []connect.ClientOption{connect.WithGRPCWeb()}},
		{"gRPC, both stream", connect.StreamTypeBidi, []connect.ClientOption{connect.WithGRPC()}},
	} {
		t.Run(protocol.name, func(t *testing.T) {
			t.Parallel() // most of it is waiting
			adaptertest.RunInProcess(t, adaptertest.Adapter{
				Serve: serve(protocol.kind), Connect: connectTo(protocol.kind, protocol.options...), RPC: true, Endings: endings,
			})
		})
	}
}

// endings are the ways for a call to end. An error without a code gets one on the wire.
var endings = []adaptertest.Ending{
	ending("an error", connect.CodeAlreadyExists, connect.NewError(connect.CodeAlreadyExists, errors.New("twice"))),
	ending("a wrapped error", connect.CodePermissionDenied, fmt.Errorf("asked: %w", connect.NewError(connect.CodePermissionDenied, errors.New("no")))),
	ending("a plain error", connect.CodeUnknown, errors.New("broken")),
	ending("a typed nil", connect.CodeUnknown, (*connect.Error)(nil)),
	ending("a plain deadline", connect.CodeDeadlineExceeded, context.DeadlineExceeded),
	ending("a wrapped deadline", connect.CodeDeadlineExceeded, fmt.Errorf("asked: %w", context.DeadlineExceeded)),
	ending("a deadline of a connection", connect.CodeDeadlineExceeded, os.ErrDeadlineExceeded),
	ending("a plain cancellation", connect.CodeCanceled, context.Canceled),
	ending("a broken connection", connect.CodeCanceled, fmt.Errorf("asked: %w", syscall.ECONNRESET)),
}

func ending(name string, code connect.Code, err error) adaptertest.Ending {
	return adaptertest.Ending{Name: name, Outcome: int(code), Handle: func(h adaptertest.Handling) { h.(*handling).err = err }}
}
