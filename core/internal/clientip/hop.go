package clientip

import (
	"net/netip"
	"strings"
)

// cutLast splits a line before its last hop. The rest, which the caller may have written, does not
// affect how the hop is read.
func (f *Finder) cutLast(line string) (rest, hop string, more bool) {
	if !f.forwarded {
		comma := strings.LastIndexByte(line, ',')
		return line[:max(0, comma)], line[comma+1:], comma >= 0
	}
	comma := lastOutsideQuotes(line, ',')
	return line[:max(0, comma)], forwardedFor(line[comma+1:]), comma >= 0
}

// lastOutsideQuotes returns the index of the last mark that is in no quoted string, or -1. It reads
// from the right, where a trusted proxy wrote, so an open quote further left hides nothing.
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

// escaped reports whether the byte after a text is escaped: by an odd number of backslashes.
func escaped(before string) bool {
	return (len(before)-len(strings.TrimRight(before, `\`)))%2 == 1
}

// forwardedFor returns the "for" parameter of one element of a Forwarded header, without its
// quotes, or "".
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

// parseHop reads an address as proxies write it: with or without a port, brackets and spaces. It
// returns the zero Addr for anything else.
func parseHop(hop string) netip.Addr {
	hop = strings.TrimSpace(hop)
	if len(hop) > 64 {
		return netip.Addr{}
	}
	if strings.HasPrefix(hop, "[") || strings.Count(hop, ":") == 1 { // not for other hops, because an error would allocate
		if withPort, err := netip.ParseAddrPort(hop); err == nil {
			return Plain(withPort.Addr())
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
	return Plain(addr)
}
