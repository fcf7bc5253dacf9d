package adaptertest

import (
	"net"
	"strings"
	"sync/atomic"
	"testing"
)

// from is a listener whose connections seem to come from a peer that the test chooses. It can be an
// address that this machine does not have.
type from struct {
	net.Listener
	peer atomic.Pointer[net.Addr] // of the connections accepted next
}

// show chooses the peer of the connections that are opened from now on. It must be called before
// the first one.
func (l *from) show(peer net.Addr) { l.peer.Store(&peer) }

// Accept implements net.Listener.
func (l *from) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return shownFrom{conn, *l.peer.Load()}, nil
}

// shownFrom is a connection that seems to come from another peer.
type shownFrom struct {
	net.Conn
	peer net.Addr
}

// RemoteAddr implements net.Conn.
func (c shownFrom) RemoteAddr() net.Addr { return c.peer }

// peerNamed returns the address written as "10.0.0.1" or "fe80::1%eth0", or as "unix" for a peer
// without an address.
func peerNamed(t testing.TB, text string) net.Addr {
	t.Helper()
	if text == "unix" {
		return &net.UnixAddr{Name: "@", Net: "unix"}
	}
	text, zone, _ := strings.Cut(text, "%")
	ip := net.ParseIP(text)
	if ip == nil {
		t.Fatalf("%q is not an address", text)
	}
	return &net.TCPAddr{IP: ip, Port: 4711, Zone: zone}
}
