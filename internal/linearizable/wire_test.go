package linearizable

import (
	"context"
	"io"
	"math/rand/v2"
	"net"
	"sync/atomic"
	"testing"
	"time"
)

// lossyConn is a connection that now and then breaks when a reply has arrived, or before a command
// is sent. It sets itself up first.
type lossyConn struct {
	net.Conn
	replies atomic.Int64
}

func dialLossy(ctx context.Context, network, addr string) (net.Conn, error) {
	conn, err := new(net.Dialer).DialContext(ctx, network, addr)
	return &lossyConn{Conn: conn}, err
}

// Read implements net.Conn.
func (c *lossyConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if c.replies.Add(1) > handshake && rand.N(40) == 0 {
		_ = c.Close()
		return 0, io.ErrUnexpectedEOF
	}
	return n, err
}

// Write implements net.Conn.
func (c *lossyConn) Write(b []byte) (int, error) {
	if c.replies.Load() > handshake && rand.N(80) == 0 {
		_ = c.Close()
	}
	return c.Conn.Write(b)
}

// handshake is more than the number of replies in which a connection is set up.
const handshake = 4

// disturb does something to the server that breaks or delays the calls in flight, or makes the next
// ones load their script anew. It does one thing at a time, lest it breaks its own connection.
func (f *fleet) disturb(t *testing.T) {
	f.disturbing.Lock()
	defer f.disturbing.Unlock()
	ctx, err := context.Background(), error(nil)
	switch rand.N(3) {
	case 0:
		err = f.server.ClientKillByFilter(ctx, "TYPE", "normal", "SKIPME", "yes").Err()
	case 1:
		err = f.server.ClientPause(ctx, 3*time.Millisecond).Err()
	case 2:
		err = f.server.ScriptFlush(ctx).Err()
	}
	if err != nil {
		t.Error(err)
	}
}
