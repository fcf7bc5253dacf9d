package clientip_test

import (
	"cmp"
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

var proxies = []string{"10.0.0.0/8", "fd00::/8"}

// headers are lines of a header that trusted proxies write, and the address that is counted. The calls
// come from 10.0.0.1, unless they name another peer. FuzzSubject tries many more.
var headers = []struct{ name, header, peer, lines, want string }{
	{"no header", "", "", "", "10.0.0.1"},
	{"one hop", "", "", "203.0.113.7", "203.0.113.7"},
	{"spoofed by an untrusted peer", "", "198.51.100.9", "203.0.113.7", "198.51.100.9"},
	{"spoofed through the proxy", "", "", "1.1.1.1, 203.0.113.7", "203.0.113.7"},
	{"trusted hop left of the client is not passed", "", "", "1.1.1.1, 10.5.5.5, 203.0.113.7, 10.9.9.9", "203.0.113.7"},
	{"all hops trusted: the leftmost", "", "", "10.3.3.3, 10.2.2.2", "10.3.3.3"},
	{"lists on several lines", "", "", "1.1.1.1, 203.0.113.7\n10.9.9.9, 10.8.8.8", "203.0.113.7"},
	{"brackets, zone and port", "", "", "[2001:db8:1:2:3::4%eth0]:4711", "2001:db8:1:2::/64"},
	{"mapped IPv4, brackets and port", "", "", "[::ffff:203.0.113.7]:80", "203.0.113.7"},
	{"translated IPv4 in hex", "", "", "64:ff9b::cb00:7107", "203.0.113.7"},
	{"leading zeros stop", "", "", "203.0.113.7, 010.0.0.1", "10.0.0.1"},
	{"unreadable stops at the last trusted hop", "", "", "203.0.113.7, junk, 10.9.9.9", "10.9.9.9"},
	{"empty line stops", "", "", "203.0.113.7\n", "10.0.0.1"},
	{"1000 made-up hops", "", "", strings.Repeat("1.1.1.1, ", 1000) + "203.0.113.7", "203.0.113.7"},
	{"1000 trusted hops", "", "", "203.0.113.7" + strings.Repeat(", 10.2.2.2", 1000), "203.0.113.7"},
	{"a megabyte without a comma", "", "", strings.Repeat("1", 1<<20), "10.0.0.1"},
	{"a megabyte left of the client", "", "", strings.Repeat("x", 1<<20) + ", 203.0.113.7", "203.0.113.7"},
	{"unix peer is not trusted by itself", "", "unix", "203.0.113.7", "unknown"},

	{"in capitals", "forwarded", "", "FOR=203.0.113.7", "203.0.113.7"},
	{"among others", "forwarded", "", "proto=https;For=203.0.113.7;by=10.0.0.1", "203.0.113.7"},
	{"spaces", "forwarded", "", " proto=https ; for = 203.0.113.7 ; by=10.0.0.1 ", "203.0.113.7"},
	{"quotes and port", "forwarded", "", `for="[2001:db8:1:2:3::4]:4711"`, "2001:db8:1:2::/64"},
	{"spoofed", "forwarded", "198.51.100.9", "for=203.0.113.7", "198.51.100.9"},
	{"two proxies", "forwarded", "", "for=1.1.1.1, for=203.0.113.7;by=10.2.2.2, for=10.9.9.9", "203.0.113.7"},
	{"without for", "forwarded", "", "for=1.1.1.1, proto=https", "10.0.0.1"},
	{"comma in quotes", "forwarded", "", `for=1.1.1.1, for=203.0.113.7;by="_a,for=1.1.1.1"`, "203.0.113.7"},
	{"semicolon in quotes", "forwarded", "", `for=203.0.113.7;host="a;for=1.1.1.1"`, "203.0.113.7"},
	{"quote left open on the caller's line", "forwarded", "", "for=\"1.1.1.1\nfor=203.0.113.7", "203.0.113.7"},
	{"escaped quotes", "forwarded", "", `for=1.1.1.1, for=203.0.113.7;host="\";for=1.1.1.1;\"\\"`, "203.0.113.7"},
	{"a megabyte of quotes", "forwarded", "", strings.Repeat(`"`, 1<<20) + ", for=203.0.113.7", "203.0.113.7"},
	{"a megabyte of value", "forwarded", "", "for=" + strings.Repeat("1", 1<<20), "10.0.0.1"},

	{"a single address", "x-real-ip", "", "203.0.113.7:80", "203.0.113.7"},
	{"missing", "x-real-ip", "", "", "10.0.0.1"},
	{"junk", "x-real-ip", "", "junk", "10.0.0.1"},
}

// Only the one header is believed. Others, which callers may write, are ignored even if it is missing.
func TestHeaders(t *testing.T) {
	for _, test := range headers {
		t.Run(test.header+" "+test.name, func(t *testing.T) {
			config := clientip.Config{TrustedProxies: proxies, Header: test.header}
			v := from(cmp.Or(test.peer, "10.0.0.1"))
			for _, other := range []string{"X-Forwarded-For", "Forwarded", "X-Real-Ip"} {
				v.with(other, "for=1.1.1.1")
			}
			if delete(v.request, http.CanonicalHeaderKey(cmp.Or(test.header, "X-Forwarded-For"))); test.lines != "" {
				v.request[http.CanonicalHeaderKey(cmp.Or(test.header, "X-Forwarded-For"))] = strings.Split(test.lines, "\n")
			}
			if got := subject(t, config, v); got != "ip:"+test.want {
				t.Errorf("counted as %s, want ip:%s", got, test.want)
			}
		})
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
