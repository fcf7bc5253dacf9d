package clientip

import (
	"encoding/binary"
	"net/netip"
)

// nat64 is the well-known prefix (RFC 6052) under which a translator shows IPv4 callers to an IPv6
// network.
var nat64 = netip.MustParsePrefix("64:ff9b::/96")

// Plain returns the one form of an address that is compared and counted: without a zone, and an
// IPv4 address in any IPv6 form as IPv4. Use it before any prefix is taken. If the prefix came
// first, all IPv4-mapped addresses would become one (CVE-2026-30827).
func Plain(addr netip.Addr) netip.Addr {
	if addr.Is4() {
		return addr
	}
	addr = addr.Unmap().WithZone("")
	if nat64.Contains(addr) {
		bytes := addr.As16()
		return netip.AddrFrom4([4]byte(bytes[12:]))
	}
	return addr
}

// ParsePeer reads a net/http RemoteAddr: "192.0.2.1:1234", "[2001:db8::1]:1234", or without a port.
// It returns the zero Addr for anything else, such as the "@" of a unix socket.
func ParsePeer(text string) netip.Addr {
	if peer, ok := parseIPv4Peer(text); ok {
		return peer
	}
	if peer, err := netip.ParseAddrPort(text); err == nil {
		return peer.Addr()
	}
	addr, _ := netip.ParseAddr(text)
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
