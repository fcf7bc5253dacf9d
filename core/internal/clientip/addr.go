package clientip

import "net/netip"

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
