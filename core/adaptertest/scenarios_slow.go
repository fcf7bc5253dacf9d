package adaptertest

import (
	"context"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/internal/bounded"
)

// backHoweverSlow is backBeforeNext with a Redis that is slow after the handler. Otherwise a refund
// in the background would nearly always come before the next call.
func backHoweverSlow(t *testing.T, s *site) {
	received, slow := s.received(), new(slowAfter)
	limiter := s.limiter(t, func(o *core.Options) {
		if s.client != nil {
			o.Redis = slow.client(t, s.client.(*redis.Client))
		}
	})
	count := func(outcome int) bool { slow.next.Store(true); return received.success(outcome) }
	slots := core.Rule{Name: "slots", Limit: core.Limit{Max: 1, Window: 600 * time.Second, Algorithm: core.Concurrency}}
	s.serve(t, App{Limiter: limiter, Routes: []Route{{
		Path: "/shop/list", limits: limit(slots, core.Rule{Name: "list", Seconds: 600, MaxCount: 1, Count: count}),
		Handle: func(h Handling) { h.Reply(404) },
	}}})
	for range 3 {
		s.want(t, 404, "/shop/list")
	}
	if n := slow.times.Load(); s.client != nil && n != 3 {
		t.Errorf("Redis was slow %d times, want 3", n)
	}
}

// backBeforeTheEnd is backHoweverSlow with a reply of declared length that the caller may read to
// its end while the handler still runs. The next call uses another connection.
func backBeforeTheEnd(t *testing.T, s *site) {
	received, slow, gate := s.received(), new(slowAfter), newGate(t)
	limiter := s.limiter(t, func(o *core.Options) {
		if s.client != nil {
			o.Redis = slow.client(t, s.client.(*redis.Client))
		}
	})
	slots := core.Rule{Name: "slots", Limit: core.Limit{Max: 1, Window: 600 * time.Second, Algorithm: core.Concurrency}}
	counted := core.Rule{Name: "list", Seconds: 600, MaxCount: 1, Count: func(outcome int) bool { slow.next.Store(true); return received.failed(outcome) }}
	long := strings.Repeat("x", 100_000)
	for name, rules := range map[string][]core.Rule{"slots": {slots}, "counted": {counted}, "both": {slots, counted}} {
		s.serve(t, App{Limiter: limiter, Routes: []Route{
			{Path: "/shop/list", limits: limit(rules...), Handle: func(h Handling) { h.Text(long); gate.hold() }},
			{Path: "/shop/next", limits: limit(rules...), Handle: func(h Handling) { h.Text("ok") }},
		}})
		for range 2 {
			call := s.enter(t, gate, "/shop/list")
			s.want(t, 429, "/shop/next") // while the handler runs
			select {
			case reply := <-call.reply:
				t.Fatalf("%s: the caller got all of the reply (%d) from a handler that still runs", name, reply.Status)
			default: // it had the time of the other call
			}
			if reply := call.end(); reply.Status != 200 || reply.Body != long {
				t.Fatalf("%s: status %d with %d bytes", name, reply.Status, len(reply.Body))
			}
			s.want(t, 200, "/shop/next")
		}
	}
}

// slowAfter opens connections that delay the next command when they are told to.
type slowAfter struct {
	next  atomic.Bool
	times atomic.Int32
}

// client returns a slow client of the same server.
func (s *slowAfter) client(t *testing.T, like *redis.Client) *redis.Client {
	options := &redis.Options{Addr: like.Options().Addr}
	options.Dialer = func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := new(net.Dialer).DialContext(ctx, network, address)
		return slowConn{conn, s}, err
	}
	client := redis.NewClient(options)
	bounded.Cleanup(t, func() { _ = client.Close() })
	return client
}

type slowConn struct {
	net.Conn
	slow *slowAfter
}

// Write implements net.Conn.
func (c slowConn) Write(b []byte) (int, error) {
	if c.slow.next.CompareAndSwap(true, false) {
		c.slow.times.Add(1)
		time.Sleep(100 * time.Millisecond)
	}
	return c.Conn.Write(b)
}
