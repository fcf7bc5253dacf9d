package adapter

import (
	"encoding/binary"
	"net"
	"net/netip"
)

// PeerOf returns the IP of a connection's remote address, or the zero Addr for a unix socket or
// nil. For a TCP connection it does not allocate.
func PeerOf(remote net.Addr) netip.Addr {
	switch remote := remote.(type) {
	case nil:
		return netip.Addr{}
	case *net.TCPAddr:
		return remote.AddrPort().Addr()
	default:
		return PeerAddr(remote.String()) // of a listener's own type, or under another server
	}
}

// PeerAddr returns the IP of a net/http RemoteAddr ("192.0.2.1:1234", "[2001:db8::1]:1234", or
// without a port), or the zero Addr for anything else, such as the "@" of a unix socket.
func PeerAddr(remoteAddr string) netip.Addr {
	if peer, ok := parseIPv4Peer(remoteAddr); ok {
		return peer
	}
	if peer, err := netip.ParseAddrPort(remoteAddr); err == nil {
		return peer.Addr()
	}
	addr, _ := netip.ParseAddr(remoteAddr)
	return addr
}

// parseIPv4Peer reads "192.0.2.1:1234" as netip.ParseAddrPort does, in a quarter of the time. It
// collects the address in one word. If it wrote four bytes to memory and then read them as one
// word, the read would wait for the writes.
func parseIPv4Peer(text string) (peer netip.Addr, ok bool) {
	var addr uint32
	dots, value, digits := 0, uint32(0), 0
	for i := range len(text) {
		switch c := text[i]; {
		case '0' <= c && c <= '9' && (digits == 0 || value > 0):
			value, digits = value*10+uint32(c-'0'), digits+1
			if value > 255 {
				return peer, false
			}
		case c == '.' && digits > 0 && dots < 3:
			addr = addr<<8 | value
			dots, value, digits = dots+1, 0, 0
		case c == ':' && digits > 0 && dots == 3:
			var bytes [4]byte
			binary.BigEndian.PutUint32(bytes[:], addr<<8|value)
			return netip.AddrFrom4(bytes), isPort(text[i+1:])
		default:
			return peer, false
		}
	}
	return peer, false
}

// isPort reports whether a text is a port: up to five digits, and at most 65535.
func isPort(text string) bool {
	port := 0
	for i := range len(text) {
		if text[i] < '0' || text[i] > '9' || i == 5 {
			return false
		}
		port = port*10 + int(text[i]-'0')
	}
	return len(text) > 0 && port <= 65535
}
