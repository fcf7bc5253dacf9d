package bounded

import (
	"io"
	"net"
	"sync"
	"testing"
)

// Listener is a server, or a proxy, on a loopback port, whose connections a test can cut. It ends
// with the test.
type Listener struct {
	listener net.Listener
	serving  sync.WaitGroup

	mu     sync.Mutex
	conns  map[net.Conn][]net.Conn // the open ones, each with those that Dial has made for it
	closed bool
}

// Listen serves each connection by a function, in a goroutine of its own. When the function returns,
// the connection is closed.
func Listen(t testing.TB, serve func(l *Listener, conn net.Conn)) *Listener {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l := &Listener{listener: listener, conns: make(map[net.Conn][]net.Conn)}
	l.serving.Go(func() { l.accept(serve) })
	Cleanup(t, func() {
		_ = listener.Close()
		l.mu.Lock()
		l.closed = true
		l.mu.Unlock()
		l.Cut()
		l.serving.Wait()
	})
	return l
}

func (l *Listener) accept(serve func(l *Listener, conn net.Conn)) {
	for {
		conn, err := l.listener.Accept()
		if err != nil {
			return
		}
		l.mu.Lock()
		if l.closed {
			_ = conn.Close()
		}
		l.conns[conn] = nil
		l.mu.Unlock()
		l.serving.Go(func() {
			defer l.cut(conn)
			serve(l, conn)
		})
	}
}

// Addr returns where it listens, as host:port.
func (l *Listener) Addr() string { return l.listener.Addr().String() }

// Dial connects to a server for a connection. The new connection is cut together with that one.
func (l *Listener) Dial(conn net.Conn, addr string) (net.Conn, error) {
	server, err := net.Dial("tcp", addr)
	if err != nil {
		return nil, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if _, open := l.conns[conn]; !open {
		_ = server.Close()
		return nil, net.ErrClosed
	}
	l.conns[conn] = append(l.conns[conn], server)
	return server, nil
}

// Forward passes on all that a client and a server send, until one of them ends. The client is the
// connection itself, or speaks another protocol over it, such as TLS.
func (l *Listener) Forward(conn, client net.Conn, addr string) {
	server, err := l.Dial(conn, addr)
	if err != nil {
		return
	}
	go pass(server, client)
	pass(client, server)
}

// pass passes on what one side sends until one of them ends.
func pass(to, from net.Conn) {
	_, _ = io.Copy(to, from)
	_ = to.Close()
}

// Cut closes all connections. New ones are served.
func (l *Listener) Cut() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for conn := range l.conns {
		l.remove(conn)
	}
}

// IsOpen reports whether a connection has neither been cut nor ended.
func (l *Listener) IsOpen(conn net.Conn) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	_, open := l.conns[conn]
	return open
}

func (l *Listener) cut(conn net.Conn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.remove(conn)
}

// remove closes a connection, and those that were made for it. The caller holds mu.
func (l *Listener) remove(conn net.Conn) {
	_ = conn.Close()
	for _, server := range l.conns[conn] {
		_ = server.Close()
	}
	delete(l.conns, conn)
}
