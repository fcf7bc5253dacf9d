package clientip_test

import (
	"net/http"
	"net/netip"
	"strings"
	"testing"

	"github.com/accesslimit/accesslimit/core/internal/clientip"
)

// call is what a Finder sees of a call.
type call struct {
	peer    netip.Addr
	request http.Header
}

// from returns a call of a peer, or of one without an address if peer is none.
func from(peer string) call {
	addr, _ := netip.ParseAddr(peer)
	return call{addr, make(http.Header)}
}

func (c call) with(name, value string) call {
	c.request.Add(name, value)
	return c
}

// subject returns the subject that a call is counted by.
func subject(t *testing.T, config clientip.Config, c call) string {
	t.Helper()
	finder, wrong := clientip.New(config)
	if wrong != nil {
		t.Fatal(*wrong)
	}
	return subjectBy(finder, c)
}

func subjectBy(finder *clientip.Finder, c call) string {
	addr := clientip.Plain(c.peer)
	if finder.Trusts(addr) {
		addr = finder.Behind(addr, c.request[finder.Header])
	}
	return string(finder.AppendSubject(nil, addr))
}

var proxies = clientip.Config{TrustedProxies: []string{"10.0.0.0/8", "fd00::/8"}}

func lines(lines ...string) []string { return lines }

// forwardedFor are the lines of X-Forwarded-For behind the proxies 10.0.0.0/8, and the address that is
// counted.
var forwardedFor = []struct {
	name  string
	peer  string
	lines []string
	want  string
}{
	{"no header", "", nil, "10.0.0.1"},
	{"one hop", "", lines("203.0.113.7"), "203.0.113.7"},
	{"spoofed by an untrusted peer", "198.51.100.9", lines("203.0.113.7"), "198.51.100.9"},
	{"spoofed through the proxy", "", lines("1.1.1.1, 203.0.113.7"), "203.0.113.7"},
	{"through two proxies", "", lines("1.1.1.1, 203.0.113.7, 10.9.9.9"), "203.0.113.7"},
	{"trusted hop left of the client is not passed", "", lines("1.1.1.1, 10.5.5.5, 203.0.113.7, 10.9.9.9"), "203.0.113.7"},
	{"all hops trusted: the leftmost", "", lines("10.3.3.3, 10.2.2.2"), "10.3.3.3"},
	{"several lines", "", lines("1.1.1.1", "203.0.113.7", "10.9.9.9"), "203.0.113.7"},
	{"the last line counts first", "", lines("203.0.113.7", "198.51.100.9"), "198.51.100.9"},
	{"lists on several lines", "", lines("1.1.1.1, 203.0.113.7", "10.9.9.9, 10.8.8.8"), "203.0.113.7"},
	{"no spaces", "", lines("1.1.1.1,203.0.113.7,10.9.9.9"), "203.0.113.7"},
	{"spaces and tabs", "", lines(" \t203.0.113.7 \t,  10.9.9.9  "), "203.0.113.7"},

	{"port", "", lines("203.0.113.7:4711"), "203.0.113.7"},
	{"largest port", "", lines("203.0.113.7:65535"), "203.0.113.7"},
	{"impossible port", "", lines("203.0.113.7:65536"), "10.0.0.1"},
	{"empty port", "", lines("203.0.113.7:"), "10.0.0.1"},
	{"brackets", "", lines("[2001:db8:1:2:3::4]"), "2001:db8:1:2::/64"},
	{"brackets and port", "", lines("[2001:db8:1:2:3::4]:4711"), "2001:db8:1:2::/64"},
	{"no brackets", "", lines("2001:db8:1:2:3::4"), "2001:db8:1:2::/64"},
	{"half a bracket", "", lines("[2001:db8::1"), "10.0.0.1"},
	{"the other half", "", lines("2001:db8::1]"), "10.0.0.1"},
	{"zone", "", lines("fe80::1%eth0"), "fe80::/64"},
	{"zone, brackets and port", "", lines("[fe80::1%eth0]:80"), "fe80::/64"},
	{"trusted whatever its zone", "", lines("203.0.113.7, fd00::1%eth0"), "203.0.113.7"},
	{"mapped IPv4", "", lines("::ffff:203.0.113.7"), "203.0.113.7"},
	{"mapped IPv4 in hex", "", lines("::ffff:cb00:7107"), "203.0.113.7"},
	{"mapped IPv4, long and in capitals", "", lines("0:0:0:0:0:FFFF:CB00:7107"), "203.0.113.7"},
	{"mapped IPv4, brackets and port", "", lines("[::ffff:203.0.113.7]:80"), "203.0.113.7"},
	{"mapped proxy", "", lines("203.0.113.7, ::ffff:10.9.9.9"), "203.0.113.7"},
	{"translated IPv4", "", lines("64:ff9b::203.0.113.7"), "203.0.113.7"},
	{"translated IPv4 in hex", "", lines("64:ff9b::cb00:7107"), "203.0.113.7"},
	{"beyond the translated range", "", lines("64:ff9b:0:0:0:1::7"), "64:ff9b::/64"},

	{"leading zeros stop", "", lines("203.0.113.7, 010.0.0.1"), "10.0.0.1"},
	{"unknown stops", "", lines("203.0.113.7, unknown"), "10.0.0.1"},
	{"_hidden stops", "", lines("203.0.113.7, _hidden"), "10.0.0.1"},
	{"unreadable stops at the last trusted hop", "", lines("203.0.113.7, junk, 10.9.9.9"), "10.9.9.9"},
	{"unreadable left of the client is never read", "", lines("junk, 203.0.113.7"), "203.0.113.7"},
	{"empty element stops", "", lines("203.0.113.7,,10.9.9.9"), "10.9.9.9"},
	{"trailing comma stops", "", lines("203.0.113.7,"), "10.0.0.1"},
	{"empty line stops", "", lines("203.0.113.7", ""), "10.0.0.1"},
	{"only commas", "", lines(",,,"), "10.0.0.1"},
	{"quotes are none of this header's", "", lines(`"203.0.113.7"`), "10.0.0.1"},
	{"a range is no address", "", lines("203.0.113.0/24"), "10.0.0.1"},
	{"NUL", "", lines("203.0.113.7\x00"), "10.0.0.1"},
	{"invalid UTF-8", "", lines("\xff\xfe"), "10.0.0.1"},

	{"1000 made-up hops", "", lines(strings.Repeat("1.1.1.1, ", 1000) + "203.0.113.7"), "203.0.113.7"},
	{"1000 lines", "", append(strings.Split(strings.Repeat("1.1.1.1,", 999)+"1.1.1.1", ","), "203.0.113.7"), "203.0.113.7"},
	{"1000 trusted hops", "", lines("203.0.113.7" + strings.Repeat(", 10.2.2.2", 1000)), "203.0.113.7"},
	{"a megabyte without a comma", "", lines(strings.Repeat("1", 1<<20)), "10.0.0.1"},
	{"a megabyte of commas", "", lines(strings.Repeat(",", 1<<20)), "10.0.0.1"},
	{"a megabyte left of the client", "", lines(strings.Repeat("x", 1<<20) + ", 203.0.113.7"), "203.0.113.7"},
	{"a megabyte of zone", "", lines("fe80::1%" + strings.Repeat("z", 1<<20)), "10.0.0.1"},

	{"unix peer is not trusted by itself", "unix", lines("203.0.113.7"), "unknown"},
	{"mapped peer", "::ffff:10.0.0.1", lines("203.0.113.7"), "203.0.113.7"},
}

// Calls come through a trusted proxy, 10.0.0.1, unless they name another peer.
func TestXForwardedFor(t *testing.T) {
	for _, test := range forwardedFor {
		t.Run(test.name, func(t *testing.T) {
			v := from("10.0.0.1")
			if test.peer != "" {
				v = from(test.peer)
			}
			v.request["X-Forwarded-For"] = test.lines
			if got := subject(t, proxies, v); got != "ip:"+test.want {
				t.Errorf("counted as %s, want ip:%s", got, test.want)
			}
		})
	}
}

func TestPeersAreCountedWithoutTrust(t *testing.T) {
	for peer, want := range map[string]string{
		"203.0.113.7": "203.0.113.7", "::ffff:203.0.113.7": "203.0.113.7", "64:ff9b::203.0.113.7": "203.0.113.7",
		"2001:db8:1:2:3::4": "2001:db8:1:2::/64", "fe80::1%eth0": "fe80::/64", "::1": "::/64", "": "unknown",
	} {
		v := from(peer).with("X-Forwarded-For", "1.1.1.1").with("Forwarded", "for=1.1.1.1").with("X-Real-Ip", "1.1.1.1")
		if got := subject(t, clientip.Config{}, v); got != "ip:"+want {
			t.Errorf("%s is counted as %s, want ip:%s", peer, got, want)
		}
	}
}

func TestIPv6Grouping(t *testing.T) {
	const one = "2001:db8:aaaa:bbcc:1::1"
	for prefix, want := range map[int]string{
		0: "2001:db8:aaaa:bbcc::/64", 64: "2001:db8:aaaa:bbcc::/64", 56: "2001:db8:aaaa:bb00::/56", 48: "2001:db8:aaaa::/48",
		32: "2001:db8::/32", 127: "2001:db8:aaaa:bbcc:1::/127", 128: one,
	} {
		if got := subject(t, clientip.Config{IPv6Prefix: prefix}, from(one)); got != "ip:"+want {
			t.Errorf("/%d: %s, want ip:%s", prefix, got, want)
		}
		for _, peer := range []string{"203.0.113.7", "::ffff:203.0.113.7"} { // CVE-2026-30827: never by a prefix
			if got := subject(t, clientip.Config{IPv6Prefix: prefix}, from(peer)); got != "ip:203.0.113.7" {
				t.Errorf("/%d: %s is counted as %s", prefix, peer, got)
			}
		}
	}
}

func TestUnixProxies(t *testing.T) {
	ip := clientip.Config{TrustedProxies: []string{"unix", "10.0.0.0/8"}}
	for header, want := range map[string]string{"203.0.113.7": "203.0.113.7", "203.0.113.7, 10.1.1.1": "203.0.113.7", "": "unknown", "junk": "unknown"} {
		v := from("")
		if header != "" {
			v.with("X-Forwarded-For", header)
		}
		if got := subject(t, ip, v); got != "ip:"+want {
			t.Errorf("%q: %s, want ip:%s", header, got, want)
		}
	}
}

// Calls come through a trusted proxy, 10.0.0.1, which writes the header of RFC 7239.
func TestForwarded(t *testing.T) {
	ip := clientip.Config{TrustedProxies: proxies.TrustedProxies, Header: "forwarded"}
	for _, test := range []struct{ name, lines, want string }{
		{"plain", `for=203.0.113.7`, "203.0.113.7"},
		{"in capitals", `FOR=203.0.113.7`, "203.0.113.7"},
		{"among others", `proto=https;For=203.0.113.7;by=10.0.0.1`, "203.0.113.7"},
		{"spaces", ` proto=https ; for = 203.0.113.7 ; by=10.0.0.1 `, "203.0.113.7"},
		{"quotes", `for="203.0.113.7"`, "203.0.113.7"},
		{"quotes and port", `for="203.0.113.7:4711"`, "203.0.113.7"},
		{"IPv6", `for="[2001:db8:1:2:3::4]"`, "2001:db8:1:2::/64"},
		{"IPv6 and port", `for="[2001:db8:1:2:3::4]:4711"`, "2001:db8:1:2::/64"},
		{"obfuscated port", `for="[2001:db8:1:2:3::4]:_x"`, "10.0.0.1"},
		{"spoofed", `for=1.1.1.1, for=203.0.113.7`, "203.0.113.7"},
		{"two proxies", `for=1.1.1.1, for=203.0.113.7;by=10.2.2.2, for=10.9.9.9`, "203.0.113.7"},
		{"several lines", "for=1.1.1.1\nfor=203.0.113.7\nfor=10.9.9.9", "203.0.113.7"},
		{"all trusted", `for=10.3.3.3, for=10.2.2.2`, "10.3.3.3"},

		{"unknown stops", `for=1.1.1.1, for=unknown`, "10.0.0.1"},
		{"hidden stops", `for=1.1.1.1, for="_hidden"`, "10.0.0.1"},
		{"stops at the last trusted", `for=1.1.1.1, for=_x, for=10.9.9.9`, "10.9.9.9"},
		{"without for", `for=1.1.1.1, proto=https`, "10.0.0.1"},
		{"empty element", `for=1.1.1.1,`, "10.0.0.1"},
		{"empty value", `for=1.1.1.1, for=`, "10.0.0.1"},
		{"no pair", `203.0.113.7`, "10.0.0.1"},

		{"comma in quotes", `for=1.1.1.1, by="_a,b";for=203.0.113.7`, "203.0.113.7"},
		{"comma in quotes behind", `for=1.1.1.1, for=203.0.113.7;by="_a,for=1.1.1.1"`, "203.0.113.7"},
		{"semicolon in quotes", `proto=http;host="a;for=1.1.1.1";for=203.0.113.7`, "203.0.113.7"},
		{"semicolon in quotes behind", `for=203.0.113.7;host="a;for=1.1.1.1"`, "203.0.113.7"},
		{"quote left open by the caller", `for="1.1.1.1, for=203.0.113.7`, "203.0.113.7"},
		{"quote left open on the caller's line", "for=\"1.1.1.1\nfor=203.0.113.7", "203.0.113.7"},
		{"escaped quote in the proxy's element", `for=1.1.1.1;x=y, host="a\"";for=203.0.113.7`, "203.0.113.7"},
		{"escaped quote behind", `for=1.1.1.1, for=203.0.113.7;host="a\"b"`, "203.0.113.7"},
		{"escaped quotes behind", `for=1.1.1.1, for=203.0.113.7;host="\";for=1.1.1.1;\"\\"`, "203.0.113.7"},
		{"escaped quote left open by the caller", `for="1.1.1.1\", for=203.0.113.7`, "203.0.113.7"},
		{"escaped backslash", `for=1.1.1.1, host="a\\";for=203.0.113.7`, "203.0.113.7"},

		{"1000 elements", strings.Repeat("for=1.1.1.1, ", 1000) + "for=203.0.113.7", "203.0.113.7"},
		{"1000 trusted elements", "for=203.0.113.7" + strings.Repeat(`, for="10.2.2.2:80"`, 1000), "203.0.113.7"},
		{"a megabyte of quotes", strings.Repeat(`"`, 1<<20) + ", for=203.0.113.7", "203.0.113.7"},
		{"a megabyte of value", "for=" + strings.Repeat("1", 1<<20), "10.0.0.1"},
	} {
		t.Run(test.name, func(t *testing.T) {
			v := from("10.0.0.1").with("X-Forwarded-For", "1.1.1.1")
			v.request["Forwarded"] = strings.Split(test.lines, "\n")
			if got := subject(t, ip, v); got != "ip:"+test.want {
				t.Errorf("counted as %s, want ip:%s", got, test.want)
			}
			if got := subject(t, ip, call{netip.MustParseAddr("198.51.100.9"), v.request}); got != "ip:198.51.100.9" {
				t.Errorf("an untrusted peer is counted as %s", got)
			}
		})
	}
}

// Only this one header, with a single address, is believed: no other header, even if it is missing.
func TestSingleHeader(t *testing.T) {
	ip := clientip.Config{TrustedProxies: proxies.TrustedProxies, Header: "x-real-ip"}
	for _, test := range []struct{ name, value, want string }{
		{"address", "203.0.113.7", "203.0.113.7"},
		{"IPv6", "2001:db8:1:2:3::4", "2001:db8:1:2::/64"},
		{"port", "203.0.113.7:80", "203.0.113.7"},
		{"missing", "", "10.0.0.1"},
		{"junk", "junk", "10.0.0.1"},
		{"a list after all", "1.1.1.1, 203.0.113.7", "203.0.113.7"},
	} {
		v := from("10.0.0.1").with("X-Forwarded-For", "1.1.1.1").with("Forwarded", "for=1.1.1.1")
		if test.value != "" {
			v.with("X-Real-Ip", test.value)
		}
		if got := subject(t, ip, v); got != "ip:"+test.want {
			t.Errorf("%s: counted as %s, want ip:%s", test.name, got, test.want)
		}
	}
}

// Each way to write a proxy trusts the peers that it means, and no others.
func TestTrustedProxies(t *testing.T) {
	for _, test := range []struct{ proxy, trusted, untrusted string }{
		{"10.0.0.0/8", "10.255.0.1", "11.0.0.1"},
		{"10.1.2.3/8", "10.255.0.1", "11.0.0.1"},
		{"10.0.0.1", "10.0.0.1", "10.0.0.2"},
		{"10.0.0.1", "::ffff:10.0.0.1", "::ffff:10.0.0.2"},
		{"::ffff:10.0.0.1", "10.0.0.1", "10.0.0.2"},
		{"::ffff:10.0.0.0/104", "10.255.0.1", "11.0.0.1"},
		{"fd00::/8", "fd12::1", "fe12::1"},
		{"2001:db8::1", "2001:db8::1", "2001:db8::2"},
		{"fe80::/10", "fe80::1%eth0", "2001:db8::1"},
		{"64:ff9b::10.0.0.1", "64:ff9b::10.0.0.1", "64:ff9b::10.0.0.2"},
		{"unix", "", "127.0.0.1"},
	} {
		ip := clientip.Config{TrustedProxies: []string{test.proxy}}
		if got := subject(t, ip, from(test.trusted).with("X-Forwarded-For", "203.0.113.7")); got != "ip:203.0.113.7" {
			t.Errorf("%s does not trust %q: %s", test.proxy, test.trusted, got)
		}
		if got := subject(t, ip, from(test.untrusted).with("X-Forwarded-For", "203.0.113.7")); got == "ip:203.0.113.7" {
			t.Errorf("%s trusts %q", test.proxy, test.untrusted)
		}
	}
}
