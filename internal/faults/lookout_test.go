package faults_test

import (
	"bytes"
	"context"
	"net"
	"sync"
	"testing"
)

// lookout records which servers have answered a client's INFO. A limiter cannot notice that a
// server was replaced before it has its INFO.
type lookout struct {
	mu    sync.Mutex
	known map[string]bool // by their addresses
}

// dial is a Dialer.
func (l *lookout) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	conn, err := new(net.Dialer).DialContext(ctx, network, addr)
	if err != nil {
		return nil, err
	}
	return &watched{conn, l, addr}, nil
}

// await waits until a server has answered INFO.
func (l *lookout) await(t *testing.T, addr string) {
	t.Helper()
	soon(t, "the limiter knows the server", func() bool {
		l.mu.Lock()
		defer l.mu.Unlock()
		return l.known[addr]
	})
}

// watched is a connection to a server.
type watched struct {
	net.Conn
	lookout *lookout
	addr    string
}

// Read looks for the answer to INFO in what it reads.
func (w *watched) Read(p []byte) (int, error) {
	n, err := w.Conn.Read(p)
	if bytes.Contains(p[:n], []byte("run_id:")) {
		w.lookout.mu.Lock()
		defer w.lookout.mu.Unlock()
		if w.lookout.known == nil {
			w.lookout.known = make(map[string]bool)
		}
		w.lookout.known[w.addr] = true
	}
	return n, err
}
