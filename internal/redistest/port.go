package redistest

import (
	"math/rand/v2"
	"net"
	"strconv"
	"testing"
)

const (
	// The servers listen on [lowestPort, lowestPort+ports), and their cluster buses busOffset
	// above, which is Redis's own rule. Both ranges are below the ports that Linux gives to
	// outgoing connections (32768 and up). While its server is down, a port in that range could be
	// taken by any client, even by one that tries to reach the same server and connects to itself.
	lowestPort = 11000
	ports      = 10000
	busOffset  = 10000
)

// freePort returns a random loopback port that is free at the moment, together with its cluster bus
// port.
func freePort(t testing.TB) int {
	t.Helper()
	for range 100 {
		port := lowestPort + rand.IntN(ports)
		if isFree(port) && isFree(port+busOffset) {
			return port
		}
	}
	t.Fatalf("redistest: no free port found on %s between %d and %d", loopback, lowestPort, lowestPort+ports)
	return 0
}

func isFree(port int) bool {
	listener, err := net.Listen("tcp", address(port))
	return err == nil && listener.Close() == nil
}

// loopback is the only interface the servers listen on.
const loopback = "127.0.0.1"

func address(port int) string { return net.JoinHostPort(loopback, strconv.Itoa(port)) }
