package faults_test

import (
	"context"
	"net"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc"

	"github.com/accesslimit/accesslimit/core/adaptertest"
	"github.com/accesslimit/accesslimit/internal/bounded"
	"github.com/accesslimit/accesslimit/internal/frameworks"
)

// way is a way to leave.
type way struct {
	name  string
	leave func(t *testing.T, dial adaptertest.Dial) (call func())
}

// waysOf returns the ways to leave that a framework's protocols have.
func waysOf(f framework) []way {
	switch {
	case f.RPC:
		return []way{{"deadline of 1 ms", grpcDeadline}, {"cancelled", grpcCancelled}}
	case f.unnoticed():
		return []way{{"connection closed", hangUp}}
	default:
		return []way{{"connection closed", hangUp}, {"stream reset", resetStream}}
	}
}

// hangUp sends a request over HTTP/1.1 and closes the connection at once, or very soon.
func hangUp(_ *testing.T, dial adaptertest.Dial) func() {
	var calls atomic.Int64
	return func() {
		conn, err := dial(context.Background())
		if err != nil {
			return
		}
		_, _ = conn.Write([]byte("GET /shop/list HTTP/1.1\r\nHost: service.test\r\n\r\n"))
		time.Sleep(time.Duration(calls.Add(1)%4) * time.Millisecond)
		_ = conn.Close()
	}
}

// resetStream calls over HTTP/2 and resets the stream at once, or very soon.
func resetStream(t *testing.T, dial adaptertest.Dial) func() {
	transport := &http.Transport{
		Protocols:   new(http.Protocols),
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) { return dial(ctx) },
	}
	transport.Protocols.SetUnencryptedHTTP2(true)
	t.Cleanup(transport.CloseIdleConnections)
	var calls atomic.Int64
	return func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Duration(calls.Add(1)%4)*time.Millisecond+100*time.Microsecond)
		defer cancel()
		request, _ := http.NewRequestWithContext(ctx, "GET", "http://service.test/shop/list", nil)
		if response, err := transport.RoundTrip(request); err == nil {
			_ = response.Body.Close()
		}
	}
}

// grpcDeadline calls with a grpc-timeout of a millisecond.
func grpcDeadline(t *testing.T, dial adaptertest.Dial) func() {
	return grpcCall(t, dial, func(int64) (context.Context, context.CancelFunc) {
		return context.WithTimeout(context.Background(), time.Millisecond)
	})
}

// grpcCancelled calls without a deadline, and resets the stream at once, or very soon.
func grpcCancelled(t *testing.T, dial adaptertest.Dial) func() {
	return grpcCall(t, dial, func(call int64) (context.Context, context.CancelFunc) {
		ctx, cancel := context.WithCancel(context.Background())
		time.AfterFunc(time.Duration(call%4)*time.Millisecond+100*time.Microsecond, cancel)
		return ctx, cancel
	})
}

func grpcCall(t *testing.T, dial adaptertest.Dial, until func(call int64) (context.Context, context.CancelFunc)) func() {
	client := frameworks.GRPC(grpc.StreamDesc{}).Connect(t, dial)
	bounded.Cleanup(t, client.Close)
	client.Do(t, adaptertest.Call{Path: "/no/such"}) // so that the connection is up
	var calls atomic.Int64
	return func() {
		ctx, cancel := until(calls.Add(1))
		defer cancel()
		client.Do(t, adaptertest.Call{Path: "/shop/list", Context: ctx})
	}
}
