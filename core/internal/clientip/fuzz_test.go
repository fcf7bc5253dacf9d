package clientip_test

import (
	"net"
	"net/netip"
	"strconv"
	"strings"
	"testing"

	"github.com/accesslimit/accesslimit/core/internal/clientip"
)

// reading is a way to find the caller's address.
type reading struct {
	finder *clientip.Finder
	unix   bool // a peer without an address is trusted
}

// readings returns the three forms of a header, in the order of the fuzzer's number.
func readings(f *testing.F) (all []reading) {
	for _, config := range []clientip.Config{
		{TrustedProxies: fuzzProxies},
		{TrustedProxies: fuzzProxies, Header: "forwarded"},
		{TrustedProxies: append([]string{"unix"}, fuzzProxies...), Header: "x-real-ip"},
	} {
		finder, wrong := clientip.New(config)
		if wrong != nil {
			f.Fatal(*wrong)
		}
		all = append(all, reading{finder, config.Header == "x-real-ip"})
	}
	return all
}

var fuzzProxies = []string{"10.0.0.0/8", "127.0.0.1", "fd00::/8", "::1"}

// FuzzSubject checks that a call is counted by the address that a slow reading of the same header
// finds, whatever callers and proxies write; that only a trusted peer's header is read; that
// nothing to the left of the first untrusted hop has an influence; and that an address is counted
// in one form only.
func FuzzSubject(f *testing.F) {
	for form, lines := range []string{
		"1.1.1.1, 203.0.113.7:80\n[2001:db8::1%eth0]:443,10.9.9.9\n::ffff:10.0.0.1",
		"for=1.1.1.1;by=\"a,b\", For=\"[2001:db8:1:2::3]:80\";host=\"a\\\"b\"\nfor=10.2.2.2, for=\"127.0.0.1:1\"",
		"64:ff9b::203.0.113.7\n[::ffff:cb00:7107]:80",
	} {
		f.Add(byte(form), "10.0.0.1", lines)
		f.Add(byte(form), "::1", lines)
		f.Add(byte(form), "", lines)
		f.Add(byte(form), "203.0.113.9", lines)
	}
	for _, hop := range []string{
		"", ",,,", "unknown", "_hidden", "010.0.0.1", "1.2.3.4.5", "[1.2.3.4]", "[::1", "::1]", "[[::1]]", "1.2.3.4%eth0", "fe80::1%", "fe80::1%a%b",
		"::ffff:1.2.3.4%eth0", "[::ffff:1.2.3.4%eth0]:80", "1.2.3.4:", "1.2.3.4:0080", "1.2.3.4:65536", "[2001:db8::1]:-1", "\u00a01.2.3.4", "\x001.2.3.4",
		"\xff", "10.0.0.1, 10.0.0.2", "64:ff9b:0:0:0:1::7", "2002:cb00:7107::1", "203.0.113.7,", "for=", "for=\"", "for=1.1.1.1\\", "for=\"10.0.0.1\\\"",
	} {
		f.Add(byte(0), "10.0.0.1", hop)
		f.Add(byte(1), "10.0.0.1", hop+", for=10.1.1.1")
		f.Add(byte(1), "10.0.0.1", "for=\""+hop+"\"")
		f.Add(byte(2), "fd00::1%eth0", hop)
	}
	all := readings(f)
	f.Fuzz(func(t *testing.T, form byte, peer, text string) {
		reading := all[int(form)%len(all)]
		addr, err := netip.ParseAddr(peer)
		if err != nil && peer != "" || len(text) > 4096 {
			return // no connection has more addresses, and the slow reading is slow
		}
		counted := func(lines []string) string {
			return subjectBy(reading.finder, call{addr, map[string][]string{reading.finder.Header: lines}})
		}
		lines := strings.Split(text, "\n")
		got, want := counted(lines), "ip:"+reading.slowly(peer, lines)
		if got != want {
			t.Errorf("%s %q from %q: counted as %s, want %s", reading.finder.Header, lines, peer, got, want)
		}
		wantCanonical(t, got)
		if !reading.trusts(readPeer(peer)) {
			return
		}
		for _, last := range [][]string{append(lines, reading.hop("203.0.113.7")), {text + ", " + reading.hop("203.0.113.7")}} {
			if got := counted(last); got != "ip:203.0.113.7" {
				t.Errorf("%s %q from %q: counted as %s, left of the hop that nobody trusts", reading.finder.Header, last, peer, got)
			}
		}
	})
}

// hop returns what a trusted proxy writes for an address.
func (r reading) hop(addr string) string {
	if r.finder.Header == "Forwarded" {
		return "for=" + addr
	}
	return addr
}

// wantCanonical checks that a subject is the one form of an address.
func wantCanonical(t *testing.T, subject string) {
	t.Helper()
	text := strings.TrimPrefix(subject, "ip:")
	switch prefix, err := netip.ParsePrefix(text); {
	case text == "unknown":
	case err == nil:
		if prefix.Bits() != 64 || !prefix.Addr().Is6() || prefix.Addr().Is4In6() || prefix != prefix.Masked() || prefix.String() != text {
			t.Errorf("%s is not the one form of its network", subject)
		}
	default:
		if addr, err := netip.ParseAddr(text); err != nil || !addr.Is4() || addr.String() != text {
			t.Errorf("%s is not the one form of an address", subject)
		}
	}
}

// slowly returns the client's address, read as the documentation describes it: all lines are joined
// to one list, which is read from the right as far as the hops are trusted and readable.
func (r reading) slowly(peer string, lines []string) string {
	client := readPeer(peer)
	if !r.trusts(client) {
		return inWords(client)
	}
	for i := len(lines) - 1; i >= 0; i-- {
		elements := strings.Split(lines[i], ",")
		if r.finder.Header == "Forwarded" {
			elements = splitUnquoted(lines[i], ',')
		}
		for n := len(elements) - 1; n >= 0; n-- {
			hop := elements[n]
			if r.finder.Header == "Forwarded" {
				hop = parameterFor(hop)
			}
			addr := readHop(hop)
			if addr == nil {
				return inWords(client)
			}
			client = addr
			if !r.trusts(client) {
				return inWords(client)
			}
		}
	}
	return inWords(client)
}

func (r reading) trusts(addr net.IP) bool {
	if addr == nil {
		return r.unix
	}
	four := addr.To4() != nil
	for _, proxy := range fuzzProxies {
		if !strings.Contains(proxy, "/") {
			if net.ParseIP(proxy).Equal(addr) {
				return true
			}
			continue
		}
		_, network, err := net.ParseCIDR(proxy)
		if err != nil {
			panic(err)
		}
		if network.Contains(addr) && four == (network.IP.To4() != nil) {
			return true
		}
	}
	return false
}

func readPeer(text string) net.IP { return unmapped(strings.Split(text, "%")[0]) }

// unmapped reads an address, and returns IPv4 addresses in both IPv6 forms as IPv4.
func unmapped(text string) net.IP {
	addr := net.ParseIP(text)
	if addr == nil {
		return nil
	}
	if four := addr.To4(); four != nil {
		return four
	}
	if string(addr[:12]) == "\x00\x64\xff\x9b\x00\x00\x00\x00\x00\x00\x00\x00" {
		return addr[12:].To4()
	}
	return addr
}

// readHop reads an address with or without a port, brackets, spaces and zone. It returns nil for
// anything else.
func readHop(hop string) net.IP {
	hop = strings.TrimSpace(hop)
	if len(hop) > 64 {
		return nil
	}
	if host, port, ok := cutLast(hop, ":"); ok && isPortNumber(port) {
		if inner, bracketed := brackets(host); bracketed && strings.Contains(inner, ":") {
			return withoutZone(inner)
		}
		if !strings.Contains(host, ":") {
			return withoutZone(host)
		}
	}
	if inner, ok := brackets(hop); ok {
		hop = inner
	}
	return withoutZone(hop)
}

// withoutZone reads an address. Only IPv6 addresses may have a zone, but not those in the form of
// an IPv4 address.
func withoutZone(text string) net.IP {
	bare, zone, zoned := strings.Cut(text, "%")
	if zoned && (zone == "" || !strings.Contains(bare, ":")) {
		return nil
	}
	return unmapped(bare)
}

func brackets(text string) (inner string, ok bool) {
	if len(text) < 2 || text[0] != '[' || text[len(text)-1] != ']' {
		return "", false
	}
	return text[1 : len(text)-1], true
}

func isPortNumber(text string) bool {
	_, err := strconv.ParseUint(text, 10, 16)
	return err == nil
}

func cutLast(text, mark string) (before, after string, ok bool) {
	at := strings.LastIndex(text, mark)
	if at < 0 {
		return text, "", false
	}
	return text[:at], text[at+len(mark):], true
}

// splitUnquoted splits a text at each mark that is followed by an even number of unescaped quotes.
func splitUnquoted(text string, mark byte) []string {
	for i := range len(text) {
		if text[i] == mark && quotesFrom(text, i)%2 == 0 {
			return append([]string{text[:i]}, splitUnquoted(text[i+1:], mark)...)
		}
	}
	return []string{text}
}

// quotesFrom returns the number of unescaped quotes from a place on.
func quotesFrom(text string, at int) (n int) {
	escaped := false
	for i := range len(text) {
		if text[i] == '"' && !escaped && i >= at {
			n++
		}
		escaped = text[i] == '\\' && !escaped
	}
	return n
}

// parameterFor returns the value of the last parameter named for, without its quotes.
func parameterFor(element string) (value string) {
	for _, parameter := range splitUnquoted(element, ';') {
		if name, of, ok := strings.Cut(parameter, "="); ok && strings.EqualFold(strings.TrimSpace(name), "for") {
			value = strings.Trim(strings.TrimSpace(of), `"`)
		}
	}
	return value
}

// inWords returns an address as it is counted.
func inWords(addr net.IP) string {
	switch {
	case addr == nil:
		return "unknown"
	case addr.To4() != nil:
		return addr.To4().String()
	default:
		return (&net.IPNet{IP: addr.Mask(net.CIDRMask(64, 128)), Mask: net.CIDRMask(64, 128)}).String()
	}
}
