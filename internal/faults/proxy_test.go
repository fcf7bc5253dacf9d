package faults_test

import (
	"context"
	"fmt"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/Shopify/toxiproxy/v2"
	"github.com/redis/go-redis/v9"
	"github.com/rs/zerolog"

	"github.com/accesslimit/accesslimit/internal/bounded"
	"github.com/accesslimit/accesslimit/internal/redistest"
)

func init() { zerolog.SetGlobalLevel(zerolog.Disabled) } // toxiproxy logs every change

// wire is the network between limiters and their servers, which a test can disturb.
type wire struct {
	t        *testing.T
	proxies  map[string]*toxiproxy.Proxy // by the addresses of their servers
	vanished atomic.Bool                 // new connections are never answered
}

// newWire returns a healthy wire to servers.
func newWire(t *testing.T, servers ...*redistest.Server) *wire {
	t.Helper()
	none := toxiproxy.NewServer(toxiproxy.NewMetricsContainer(nil), zerolog.Nop())
	w := &wire{t: t, proxies: make(map[string]*toxiproxy.Proxy)}
	for _, server := range servers {
		proxy := toxiproxy.NewProxy(none, t.Name(), "127.0.0.1:0", server.Addr())
		if err := proxy.Start(); err != nil {
			t.Fatal(err)
		}
		bounded.Cleanup(t, proxy.Stop)
		w.proxies[server.Addr()] = proxy
	}
	return w
}

// over makes a client connect over the wire.
func (w *wire) over(o *redis.Options) { o.Dialer = w.dial }

// dial is a Dialer. It connects to other servers directly.
func (w *wire) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	proxy, ok := w.proxies[addr]
	if !ok {
		return new(net.Dialer).DialContext(ctx, network, addr)
	}
	for w.vanished.Load() { // as a connection's first packets are sent again and again
		select {
		case <-ctx.Done():
			return nil, &net.OpError{Op: "dial", Net: network, Err: ctx.Err()}
		case <-time.After(10 * time.Millisecond):
		}
	}
	return new(net.Dialer).DialContext(ctx, network, proxy.Listen)
}

// toxic is a fault of a wire, in toxiproxy's terms.
type toxic struct {
	kind   string
	stream string // upstream is to the server, downstream from it
	attr   string // such as "latency": 30
}

// inject adds the toxics to the wire until restore.
func (w *wire) inject(toxics ...toxic) {
	w.t.Helper()
	for _, x := range toxics {
		text := fmt.Sprintf(`{"type": %q, "stream": %q, "attributes": {%s}}`, x.kind, x.stream, x.attr)
		for _, proxy := range w.proxies {
			if _, err := proxy.Toxics.AddToxicJson(strings.NewReader(text)); err != nil {
				w.t.Fatal(err)
			}
		}
	}
}

// restore removes all toxics.
func (w *wire) restore() {
	for _, proxy := range w.proxies {
		proxy.Toxics.ResetToxics(context.Background())
	}
}
