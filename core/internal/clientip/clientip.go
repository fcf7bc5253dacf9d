// Package clientip finds the address of a caller behind proxies, and the subject by which an
// address is counted.
package clientip

import (
	"net/netip"
	"net/textproto"
	"slices"
	"strings"
)

// Config says which proxies are trusted. Its fields are those of core.ClientIP.
type Config struct {
	TrustedProxies []string
	Header         string
	IPv6Prefix     int
}

// Error says which field of a Config is wrong, and why.
type Error struct {
	Field string
	Value any
	Why   string
}

const defaultIPv6Prefix = 64

// Finder is a checked Config. It is safe for concurrent use.
type Finder struct {
	// Header is the canonical name of the header that trusted proxies write.
	Header string
	// TrustsUnix reports whether peers without an address are trusted.
	TrustsUnix bool

	trusted   []netip.Prefix
	forwarded bool // Header is RFC 7239's
	prefix    int
}

// New checks a Config.
func New(c Config) (*Finder, *Error) {
	f := &Finder{Header: "X-Forwarded-For", prefix: defaultIPv6Prefix}
	for _, proxy := range c.TrustedProxies {
		if proxy == "unix" {
			f.TrustsUnix = true
			continue
		}
		prefix, why := parseProxy(proxy)
		if why != "" {
			return nil, &Error{"TrustedProxies", proxy, why}
		}
		f.trusted = append(f.trusted, prefix)
	}
	if c.Header != "" {
		if why := c.checkHeader(); why != "" {
			return nil, &Error{"Header", c.Header, why}
		}
		f.Header = strings.Clone(textproto.CanonicalMIMEHeaderKey(c.Header))
		f.forwarded = f.Header == "Forwarded"
	}
	if c.IPv6Prefix != 0 {
		if c.IPv6Prefix < 32 || c.IPv6Prefix > 128 {
			return nil, &Error{"IPv6Prefix", c.IPv6Prefix, "must be 32 to 128"}
		}
		f.prefix = c.IPv6Prefix
	}
	return f, nil
}

// checkHeader returns why the header cannot be read, or "".
func (c Config) checkHeader() string {
	switch {
	case len(c.TrustedProxies) == 0:
		return "is only read from TrustedProxies: set them too"
	case strings.Trim(strings.ToLower(c.Header), "abcdefghijklmnopqrstuvwxyz0123456789-_") != "":
		return "must be the name of a header"
	}
	return ""
}

// parseProxy reads an address or a range, or returns why it cannot be trusted. An IPv4-mapped range
// becomes the IPv4 range that it means. A wider range (::ffff:10.0.0.0/8) would trust all
// of IPv4 or, unmapped, nobody.
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
	if addr := Plain(prefix.Addr()); addr.Is4() && !prefix.Addr().Is4() && prefix.Bits() >= 96 {
		prefix = netip.PrefixFrom(addr, prefix.Bits()-96)
	}
	// fc00::/7 and 10.0.0.0/8 are the widest networks that one owner can have.
	if prefix.Bits() < 7 || prefix.Addr().Is4() && prefix.Bits() < 8 {
		return prefix, "is wider than any network of one owner, so anybody could choose the address that is counted"
	}
	return prefix.Masked(), ""
}

// IPv6Prefix returns the length of the networks that addresses of IPv6 are counted by.
func (f *Finder) IPv6Prefix() int { return f.prefix }

// TrustsNobody reports whether no peer is trusted.
func (f *Finder) TrustsNobody() bool { return len(f.trusted) == 0 && !f.TrustsUnix }

// Trusts reports whether a peer or a hop in its plain form is a trusted proxy.
func (f *Finder) Trusts(addr netip.Addr) bool {
	if !addr.IsValid() {
		return f.TrustsUnix
	}
	return slices.ContainsFunc(f.trusted, func(p netip.Prefix) bool { return p.Contains(addr) })
}

// Behind returns the address of the caller behind a trusted peer, from the lines of Header. It
// reads them from the right as long as the hops are trusted. The first hop that is not trusted is
// the caller. If a hop cannot be read, the last one before it is.
func (f *Finder) Behind(peer netip.Addr, lines []string) netip.Addr {
	client := peer
	for i := len(lines) - 1; i >= 0; i-- {
		for rest, more := lines[i], true; more; {
			var hop string
			rest, hop, more = f.cutLast(rest)
			addr := parseHop(hop)
			if !addr.IsValid() {
				return client
			}
			client = addr
			if !f.Trusts(addr) {
				return client
			}
		}
	}
	return client
}

// Subject returns the subject that an address is counted by: ip:203.0.113.7, ip:2001:db8::/64 or
// ip:unknown.
func (f *Finder) Subject(addr netip.Addr) string { return string(f.AppendSubject(nil, Plain(addr))) }

// AppendSubject appends the subject of an address in its plain form.
func (f *Finder) AppendSubject(dst []byte, addr netip.Addr) []byte {
	dst = append(dst, "ip:"...)
	switch {
	case !addr.IsValid():
		return append(dst, "unknown"...)
	case addr.Is4() || f.prefix == 128:
		return addr.AppendTo(dst)
	default:
		prefix, _ := addr.Prefix(f.prefix)
		return prefix.AppendTo(dst)
	}
}
