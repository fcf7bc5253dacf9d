package core_test

import (
	"net/netip"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/accesslimit/accesslimit/core"
)

// subject is whom a call is counted for.
func subject(t *testing.T, ip core.ClientIP, v core.View) string {
	t.Helper()
	var heard decisions
	guard := newGuard(t, newLimiter(t, core.Options{ClientIP: ip, OnDecision: heard.note}), core.Rule{Name: "n", Seconds: 1})
	wantStatus(t, guard, v, 200)
	return heard.last(t, 1).Key
}

var proxies = core.ClientIP{TrustedProxies: []string{"10.0.0.0/8", "fd00::/8"}}

// A call through a trusted proxy, 10.0.0.1, unless another peer is named.
func TestXForwardedFor(t *testing.T) {
	lines := func(lines ...string) []string { return lines }
	for _, test := range []struct {
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
	} {
		t.Run(test.name, func(t *testing.T) {
			v := newView("GET", "/").from("10.0.0.1")
			if test.peer != "" {
				v.from(test.peer)
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
		v := newView("GET", "/").from(peer).with("X-Forwarded-For", "1.1.1.1").with("Forwarded", "for=1.1.1.1").with("X-Real-Ip", "1.1.1.1")
		if got := subject(t, core.ClientIP{}, v); got != "ip:"+want {
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
		if got := subject(t, core.ClientIP{IPv6Prefix: prefix}, newView("GET", "/").from(one)); got != "ip:"+want {
			t.Errorf("/%d: %s, want ip:%s", prefix, got, want)
		}
		for _, peer := range []string{"203.0.113.7", "::ffff:203.0.113.7"} { // CVE-2026-30827: never by a prefix
			if got := subject(t, core.ClientIP{IPv6Prefix: prefix}, newView("GET", "/").from(peer)); got != "ip:203.0.113.7" {
				t.Errorf("/%d: %s is counted as %s", prefix, peer, got)
			}
		}
	}
}

func TestUnixProxies(t *testing.T) {
	ip := core.ClientIP{TrustedProxies: []string{"unix", "10.0.0.0/8"}}
	for header, want := range map[string]string{"203.0.113.7": "203.0.113.7", "203.0.113.7, 10.1.1.1": "203.0.113.7", "": "unknown", "junk": "unknown"} {
		v := newView("GET", "/").from("")
		if header != "" {
			v.with("X-Forwarded-For", header)
		}
		if got := subject(t, ip, v); got != "ip:"+want {
			t.Errorf("%q: %s, want ip:%s", header, got, want)
		}
	}
}

// PeerAddr reads what netip reads, and takes nothing that netip does not.
func TestPeerAddrIsNetips(t *testing.T) {
	digits := rapid.StringMatching(`[0-9]{0,6}`)
	dotted := rapid.Custom(func(t *rapid.T) string {
		text := digits.Draw(t, "first")
		for range rapid.IntRange(1, 4).Draw(t, "more") {
			text += rapid.SampledFrom([]string{".", ".", ".", ".", ":", "", "%", "x", " "}).Draw(t, "mark") + digits.Draw(t, "digits")
		}
		return text
	})
	usual := rapid.StringMatching(`(0|1?[0-9]{1,2}|2[0-5]{2}|256)(\.(0|1?[0-9]{1,2}|2[0-5]{2})){3}:(0|0?[0-9]{1,5}|6553[0-9]|-1|\+1|)`)
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.OneOf(usual, dotted, rapid.String()).Draw(t, "text")
		want := netip.Addr{}
		if peer, err := netip.ParseAddrPort(text); err == nil {
			want = peer.Addr()
		} else if addr, err := netip.ParseAddr(text); err == nil {
			want = addr
		}
		if got := core.PeerAddr(text); got != want {
			t.Errorf("%q is %v, want %v", text, got, want)
		}
	})
}

func TestPeerAddr(t *testing.T) {
	for text, want := range map[string]string{
		"192.0.2.1:1234": "192.0.2.1", "192.0.2.1": "192.0.2.1", "[2001:db8::1]:80": "2001:db8::1", "2001:db8::1": "2001:db8::1",
		"[fe80::1%eth0]:80": "fe80::1%eth0", "@": "", "": "", "pipe": "", "/run/x.sock": "", "host:80": "", "192.0.2.1:x": "",
	} {
		var addr netip.Addr
		if want != "" {
			addr = netip.MustParseAddr(want)
		}
		if got := core.PeerAddr(text); got != addr {
			t.Errorf("%q is %v, want %v", text, got, addr)
		}
	}
}
