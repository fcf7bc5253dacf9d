package connectlimit_test

import (
	"context"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"testing"

	"connectrpc.com/connect"

	"github.com/accesslimit/accesslimit/connectlimit"
	"github.com/accesslimit/accesslimit/core"
)

// TestRefusalInside checks that an error of Allow reaches the caller as it is, through interceptors
// and a handler that wraps it.
func TestRefusalInside(t *testing.T) {
	limiter := newLimiter(t, core.Options{})
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
	t.Cleanup(serveHTTP(l, log.New(io.Discard, "", 0), handler))
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
	limiter := newLimiter(t, core.Options{})
	rule := core.Rule{Name: "any", Seconds: 60}
	if err := connectlimit.Allow(t.Context(), limiter.MustCheck(rule), "me"); connect.CodeOf(err) != connect.CodeInternal {
		t.Errorf("Allow: %v, want internal", err)
	}
	if _, err := connectlimit.OwnLimits(t.Context(), limiter.MustGuard(rule)); connect.CodeOf(err) != connect.CodeInternal {
		t.Errorf("OwnLimits: %v, want internal", err)
	}
}
