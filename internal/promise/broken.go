package promise

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/internal/redistest"
)

const (
	// storeTimeout is the Timeout of limiters whose servers do not answer. callerTimeout is a
	// caller's own, shorter one.
	storeTimeout  = 200 * time.Millisecond
	callerTimeout = 20 * time.Millisecond
)

// hanging returns options with a client that waits for replies longer than a test does. The heartbeats
// of a Ring would wait as long, so it has go-redis's own time.
func (e Engine) hanging(t testing.TB) core.Options {
	options := e.Options(t)
	if e.Name != "ring" {
		options.Redis = e.connect(t, nil, time.Hour)
	}
	return options
}

// network is the connection of a client to its servers. A test can break it.
type network struct {
	slow         atomic.Bool // a script takes long to reach the server
	losesReplies atomic.Bool // a script is carried out, but its answer gets lost with the connection
}

// dial is a dialer.
func (n *network) dial(ctx context.Context, proto, addr string) (net.Conn, error) {
	conn, err := new(net.Dialer).DialContext(ctx, proto, addr)
	if err != nil {
		return nil, err
	}
	return &breakable{Conn: conn, network: n}, nil
}

// breakable is a connection over a network that can be broken.
type breakable struct {
	net.Conn
	network *network
	script  atomic.Bool // whether what was sent last is a script
}

func (b *breakable) Write(p []byte) (int, error) {
	b.script.Store(bytes.Contains(p, []byte("eval")))
	if b.network.slow.Load() && b.script.Load() {
		time.Sleep(callerTimeout)
	}
	return b.Conn.Write(p)
}

func (b *breakable) Read(p []byte) (int, error) {
	n, err := b.Conn.Read(p)
	if err == nil && b.network.losesReplies.Load() && b.script.Load() {
		return 0, errors.Join(b.Close(), io.EOF)
	}
	return n, err
}

// stop suspends all servers. It must be followed by resume.
func (e Engine) stop() {
	for _, server := range e.Servers {
		server.Stop()
	}
}

// resume continues stopped servers, closes these clients, and returns when the servers have
// executed everything that the clients had sent. It closes the clients only after the servers run
// again, because go-redis's Close waits for a connection that is being read.
func (e Engine) resume(t *testing.T, clients ...redis.UniversalClient) {
	t.Helper()
	for _, server := range e.Servers {
		server.Continue()
	}
	for _, client := range clients {
		_ = client.Close()
	}
	for _, server := range e.Servers {
		own := server.Client(t)
		if !redistest.WaitUntil(func() bool {
			// go-redis before 9.23 leaves the closing of some connections to the collector.
			runtime.GC()
			list, err := own.ClientList(context.Background()).Result()
			return err == nil && strings.Count(list, "\n") == 1
		}, patient) {
			t.Fatal("a server still reads what closed clients have sent")
		}
		_ = own.Close()
	}
}
