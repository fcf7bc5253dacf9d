package redistest

import (
	"io"
	"net"
)

// Forward passes connections on to servers in turn, with all that both sides send, until the listener
// is closed.
func Forward(listener net.Listener, servers ...*Server) {
	for next := 0; ; next++ {
		in, err := listener.Accept()
		if err != nil {
			return
		}
		out, err := net.Dial("tcp", servers[next%len(servers)].Addr())
		if err != nil {
			_ = in.Close()
			continue
		}
		go pass(out, in)
		go pass(in, out)
	}
}

// pass passes on what one side sends until one of them ends.
func pass(to, from net.Conn) {
	_, _ = io.Copy(to, from)
	_ = to.Close()
}
