package redistest

import (
	"net"
	"sync/atomic"
	"testing"

	"github.com/accesslimit/accesslimit/internal/bounded"
)

// Forward starts a proxy that passes connections on to servers in turn, with all that both sides
// send, and returns its address.
func Forward(t testing.TB, servers ...*Server) (addr string) {
	t.Helper()
	var next atomic.Int64
	return bounded.Listen(t, func(l *bounded.Listener, conn net.Conn) {
		l.Forward(conn, conn, servers[int(next.Add(1)-1)%len(servers)].Addr())
	}).Addr()
}
