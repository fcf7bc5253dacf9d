package core

import (
	"net/netip"
	"net/textproto"
	"strings"
)

// ClientIP says how the caller's address is found. With the zero value it is the connection's peer,
// and no header is believed, because everybody can send one.
type ClientIP struct {
	// TrustedProxies are the addresses and CIDR ranges of your own proxies, and "unix" for those
	// that connect over a unix socket; none by default. The header is read only if the peer is one
	// of them. It is read from the right, as far as the addresses are trusted. The first that is
	// not trusted is the client's. If an address cannot be read, the client's is the one before it.
	//
	// Danger: anybody who can connect from a trusted address can choose the address that is
	// counted.
	TrustedProxies []string
	// Header is the header in which the proxies write the caller's address: X-Forwarded-For by
	// default, "Forwarded" (RFC 7239), or one that holds a single address, such as X-Real-IP.
	// Danger: name only a header that your proxies set or append to on every call.
	Header string
	// IPv6Prefix is the number of leading bits by which IPv6 addresses are counted: 32 to 128, 64
	// by default, because a single customer usually has a /64 of addresses to choose from.
	IPv6Prefix int
}

const defaultIPv6Prefix = 64

// nat64 is the well-known prefix (RFC 6052) under which a translator shows IPv4 callers to an IPv6 network.
var nat64 = netip.MustParsePrefix("64:ff9b::/96")

// clientIPs is a checked ClientIP.
type clientIPs struct {
	trusted   []netip.Prefix
	trustUnix bool
	header    string
	forwarded bool // the header is RFC 7239's
	prefix    int
}

func (c ClientIP) compile() (*clientIPs, error) {
	wrong := func(field string, value any, why string) error {
		return &RuleError{Field: "Options.ClientIP." + field, Value: value, Why: why}
	}
	compiled := &clientIPs{header: "X-Forwarded-For", prefix: defaultIPv6Prefix}
	for _, proxy := range c.TrustedProxies {
		if proxy == "unix" {
			compiled.trustUnix = true
			continue
		}
		prefix, why := parseProxy(proxy)
		if why != "" {
			return nil, wrong("TrustedProxies", proxy, why)
		}
		compiled.trusted = append(compiled.trusted, prefix)
	}
	if c.Header != "" {
		if why := c.badHeader(); why != "" {
			return nil, wrong("Header", c.Header, why)
		}
		compiled.header = strings.Clone(textproto.CanonicalMIMEHeaderKey(c.Header))
		compiled.forwarded = compiled.header == "Forwarded"
	}
	if c.IPv6Prefix != 0 {
		if c.IPv6Prefix < 32 || c.IPv6Prefix > 128 {
			return nil, wrong("IPv6Prefix", c.IPv6Prefix, "must be 32 to 128")
		}
		compiled.prefix = c.IPv6Prefix
	}
	return compiled, nil
}

func (c ClientIP) badHeader() string {
	switch {
	case len(c.TrustedProxies) == 0:
		return "is read from TrustedProxies only: name them"
	case strings.Trim(strings.ToLower(c.Header), "abcdefghijklmnopqrstuvwxyz0123456789-_") != "":
		return "must be the name of a header"
	}
	return ""
}

// parseProxy reads an address or a range, or says why it is neither. A range of IPv4 in IPv6's dress is the IPv4 range that
// it means; a mapped one that reaches beyond (::ffff:10.0.0.0/8) would trust all of IPv4 or, unmapped, nobody.
func parseProxy(text string) (prefix netip.Prefix, why string) {
	prefix, err := netip.ParsePrefix(text)
	if err != nil {
		addr, err := netip.ParseAddr(text)
		if err != nil || addr.Zone() != "" {
			return prefix, `must be an address, a CIDR range, or "unix"`
		}
		prefix = netip.PrefixFrom(addr, addr.BitLen())
	}
	if prefix.Addr().Is4In6() && prefix.Bits() < 96 {
		return prefix, "an IPv4-mapped range must have 96 bits or more: write it as an IPv4 range"
	}
	if addr := plain(prefix.Addr()); addr.Is4() && !prefix.Addr().Is4() && prefix.Bits() >= 96 {
		prefix = netip.PrefixFrom(addr, prefix.Bits()-96)
	}
	if prefix.Bits() < 7 || prefix.Addr().Is4() && prefix.Bits() < 8 { // fc00::/7 and 10.0.0.0/8 are the widest that are anybody's own
		return prefix, "is wider than any network of one owner, so that anybody could choose the address that is counted"
	}
	return prefix.Masked(), ""
}

// of is the address that a call is counted by, or the zero Addr when it has none.
func (c *clientIPs) of(v View) netip.Addr {
	peer := plain(v.RemoteAddr())
	if !c.trusts(peer) {
		return peer
	}
	client := peer
	lines := v.Header(c.header)
	for i := len(lines) - 1; i >= 0; i-- {
		for rest, more := lines[i], true; more; {
			var hop string
			rest, hop, more = c.cutLast(rest)
			addr := parseHop(hop)
			if !addr.IsValid() {
				return client
			}
			client = addr
			if !c.trusts(addr) {
				return client
			}
		}
	}
	return client
}

func (c *clientIPs) trusts(addr netip.Addr) bool {
	if !addr.IsValid() {
		return c.trustUnix
	}
	for _, prefix := range c.trusted {
		if prefix.Contains(addr) {
			return true
		}
	}
	return false
}

// cutLast takes the last hop off a line. What stands left of it, which the caller may have written, has no part in reading it.
func (c *clientIPs) cutLast(line string) (rest, hop string, more bool) {
	if !c.forwarded {
		comma := strings.LastIndexByte(line, ',')
		return line[:max(0, comma)], line[comma+1:], comma >= 0
	}
	comma := lastOutsideQuotes(line, ',')
	return line[:max(0, comma)], forwardedFor(line[comma+1:]), comma >= 0
}

// lastOutsideQuotes finds the last of a mark that is in no quoted string, -1 when there is none. It reads from the right,
// where a trusted proxy wrote, so that a quote left open further left swallows nothing.
func lastOutsideQuotes(text string, mark byte) int {
	quoted := false
	for i := len(text) - 1; i >= 0; i-- {
		switch {
		case text[i] == '"' && !escaped(text[:i]):
			quoted = !quoted
		case text[i] == mark && !quoted:
			return i
		}
	}
	return -1
}

// escaped says whether what follows is escaped, by an odd number of backslashes.
func escaped(before string) bool {
	return (len(before)-len(strings.TrimRight(before, `\`)))%2 == 1
}

// forwardedFor is the "for" parameter of one element of a Forwarded header, without its quotes; "" when it has none.
func forwardedFor(element string) string {
	for semicolon := len(element); semicolon >= 0; {
		element = element[:semicolon]
		semicolon = lastOutsideQuotes(element, ';')
		name, value, ok := strings.Cut(element[semicolon+1:], "=")
		if ok && strings.EqualFold(strings.TrimSpace(name), "for") {
			return strings.Trim(strings.TrimSpace(value), `"`)
		}
	}
	return ""
}

// parseHop reads what a proxy wrote: an address, with or without a port, brackets and spaces; the zero Addr for anything else.
func parseHop(hop string) netip.Addr {
	hop = strings.TrimSpace(hop)
	if len(hop) > 64 {
		return netip.Addr{}
	}
	if strings.HasPrefix(hop, "[") || strings.Count(hop, ":") == 1 { // an error would be an allocation
		if withPort, err := netip.ParseAddrPort(hop); err == nil {
			return plain(withPort.Addr())
		}
	}
	if inner, ok := strings.CutPrefix(hop, "["); ok {
		hop, ok = strings.CutSuffix(inner, "]")
		if !ok {
			return netip.Addr{}
		}
	}
	addr, err := netip.ParseAddr(hop)
	if err != nil {
		return netip.Addr{}
	}
	return plain(addr)
}

// plain is the one form of an address that is compared and counted: IPv4 as IPv4 however it is dressed, and no zone. It
// comes before any prefix is taken: masked first, all of mapped IPv4 would be one address (CVE-2026-30827).
func plain(addr netip.Addr) netip.Addr {
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

// appendSubject appends the subject of an address: ip:203.0.113.7, ip:2001:db8::/64, ip:unknown.
func (c *clientIPs) appendSubject(dst []byte, addr netip.Addr) []byte {
	dst = append(dst, "ip:"...)
	switch {
	case !addr.IsValid():
		return append(dst, "unknown"...)
	case addr.Is4() || c.prefix == 128:
		return addr.AppendTo(dst)
	default:
		prefix, _ := addr.Prefix(c.prefix)
		return prefix.AppendTo(dst)
	}
}
