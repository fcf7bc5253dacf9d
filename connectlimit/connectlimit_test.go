package connectlimit_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"syscall"
	"testing"

	"connectrpc.com/connect"

	"github.com/accesslimit/accesslimit/connectlimit"
	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/core/adaptertest"
	"github.com/accesslimit/accesslimit/internal/bounded"
	"github.com/accesslimit/accesslimit/internal/extensiontest"
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

// TestRefusalInside checks that an error of Allow reaches the caller as it is, through interceptors
// and a handler that wraps it.
func TestRefusalInside(t *testing.T) {
	limiter := extensiontest.NewLimiter(t, core.Options{})
	check := limiter.MustCheck(core.Rule{Name: "inside", Seconds: 600, MaxCount: 1})
	outside := connect.WithInterceptors(connectlimit.New(limiter, core.Rule{Name: "outside", Seconds: 600, MaxCount: 9}))
	handler := connect.NewUnaryHandlerSimple("/shop/list", func(ctx context.Context, _ *empty) (*empty, error) {
		if err := connectlimit.Allow(ctx, check, "me"); err != nil {
			return nil, fmt.Errorf("asked: %w", err)
		}
		return new(empty), nil
	}, outside, outside)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	bounded.Cleanup(t, serveHTTP(l, log.New(io.Discard, "", 0), handler))
	client := connect.NewClient[empty, empty](http.DefaultClient, "http://"+l.Addr().String()+"/shop/list", outside)
	defer http.DefaultClient.CloseIdleConnections()
	for _, want := range []connect.Code{0, connect.CodeResourceExhausted} {
		_, err := client.CallUnary(t.Context(), connect.NewRequest(new(empty)))
		refusal, _ := err.(*connect.Error)
		if err == nil && want == 0 {
			continue
		}
		if connect.CodeOf(err) != want || len(refusal.Details()) != 2 || len(refusal.Meta()["Retry-After"]) != 1 {
			t.Errorf("%v with details %v and %v, want one refusal", err, refusal.Details(), refusal.Meta())
		}
	}
}

// TestOutsideAHandler checks that a context that is not a handler's is refused, not served.
func TestOutsideAHandler(t *testing.T) {
	limiter := extensiontest.NewLimiter(t, core.Options{})
	rule := core.Rule{Name: "any", Seconds: 60}
	if err := connectlimit.Allow(t.Context(), limiter.MustCheck(rule), "me"); connect.CodeOf(err) != connect.CodeInternal {
		t.Errorf("Allow: %v, want internal", err)
	}
	if _, err := connectlimit.OwnLimits(t.Context(), limiter.MustGuard(rule)); connect.CodeOf(err) != connect.CodeInternal {
		t.Errorf("OwnLimits: %v, want internal", err)
	}
}
