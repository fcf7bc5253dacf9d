package grpclimit_test

import (
	"errors"
	"io"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/accesslimit/accesslimit/core/adaptertest"
	"github.com/accesslimit/accesslimit/internal/frameworks"
)

// TestStreams runs all tests of unary calls with streams.
func TestStreams(t *testing.T) {
	for name, kind := range map[string]grpc.StreamDesc{
		"server": {ServerStreams: true}, "client": {ClientStreams: true}, "both": {ServerStreams: true, ClientStreams: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel() // most of it is waiting
			adapter := frameworks.GRPC(kind)
			adapter.Endings = streamEndings(kind)
			adaptertest.RunInProcess(t, adapter)
		})
	}
}

// streamEndings are those of unary calls, and what only streams can do.
func streamEndings(kind grpc.StreamDesc) []adaptertest.Ending {
	all := append([]adaptertest.Ending(nil), endings...)
	if kind.ServerStreams {
		all = append(all, ending("messages, then an error", codes.DataLoss, func(h *frameworks.GRPCHandling) error {
			for range 3 {
				h.Text("part")
			}
			return status.Error(codes.DataLoss, "the rest is gone")
		}))
	}
	return append(all, ending("io.EOF returned", codes.Unknown, func(h *frameworks.GRPCHandling) error {
		if err := h.Stream.RecvMsg(new(emptypb.Empty)); !errors.Is(err, io.EOF) {
			return nil
		}
		return io.EOF
	}))
}
