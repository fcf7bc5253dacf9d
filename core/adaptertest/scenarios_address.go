package adaptertest

import (
	"testing"

	"github.com/accesslimit/accesslimit/core"
)

// addressScenarios are about the client's address. Every adapter must find the same one.
var addressScenarios = []scenario{
	{name: "a spoofed X-Forwarded-For is not believed", run: spoofedIsNotBelieved},
	{name: "a trusted proxy is believed", run: trustedIsBelieved},
	{name: "several header lines are one list", run: severalLines},
	{name: "Forwarded", run: forwardedHeader},
	{name: "one named header", run: namedHeader},
	{name: "IPv6 is counted by /64", run: ipv6Prefix},
	{name: "unix sockets", run: unixSockets, needs: UnixSockets},
	{name: "trusted unix sockets", run: trustedUnixSockets, needs: UnixSockets},
}

// oneEach serves a route that each client may call once in ten minutes.
func (s *site) oneEach(t *testing.T, ip core.ClientIP) {
	t.Helper()
	s.serve(t, App{
		Limiter: s.limiter(t, func(o *core.Options) { o.ClientIP = ip }),
		Routes:  []Route{{Path: "/shop/list", limits: limit(core.Rule{Seconds: 600, MaxCount: 1})}},
	})
}

var loopback8 = core.ClientIP{TrustedProxies: []string{"127.0.0.0/8", "10.0.0.0/8"}}

func spoofedIsNotBelieved(t *testing.T, s *site) {
	s.oneEach(t, core.ClientIP{})
	s.want(t, 200, "/shop/list", "X-Forwarded-For: 203.0.113.1")
	for _, spoof := range []string{
		"X-Forwarded-For: 203.0.113.2", "X-Real-Ip: 203.0.113.3", "Forwarded: for=203.0.113.4",
		"Cf-Connecting-Ip: 203.0.113.5", "True-Client-Ip: 203.0.113.6", "X-Client-Ip: 203.0.113.7",
	} {
		s.want(t, 429, "/shop/list", spoof)
	}
}

func trustedIsBelieved(t *testing.T, s *site) {
	s.oneEach(t, loopback8)
	s.want(t, 200, "/shop/list", "X-Forwarded-For: 203.0.113.1")
	s.want(t, 200, "/shop/list", "X-Forwarded-For: 203.0.113.2")
	s.want(t, 429, "/shop/list", "X-Forwarded-For: 203.0.113.1")
	s.want(t, 429, "/shop/list", "X-Forwarded-For: 198.51.100.9, 203.0.113.1")           // spoofed on the left
	s.want(t, 429, "/shop/list", "X-Forwarded-For: 198.51.100.9, 203.0.113.1, 10.1.2.3") // and a trusted hop on the right
	s.want(t, 429, "/shop/list", "X-Forwarded-For: ::ffff:203.0.113.1")
	s.want(t, 429, "/shop/list", "X-Forwarded-For: 203.0.113.1:4711")
	s.want(t, 200, "/shop/list", "X-Forwarded-For: nonsense") // counted as the proxy itself
	s.want(t, 429, "/shop/list", "X-Forwarded-For: 203.0.113.77, unknown")
}

func severalLines(t *testing.T, s *site) {
	s.oneEach(t, loopback8)
	s.want(t, 200, "/shop/list", "X-Forwarded-For: 198.51.100.1", "X-Forwarded-For: 203.0.113.1")
	s.want(t, 429, "/shop/list", "X-Forwarded-For: 198.51.100.2", "X-Forwarded-For: 203.0.113.1")
	s.want(t, 429, "/shop/list", "X-Forwarded-For: 203.0.113.1", "X-Forwarded-For: 10.0.0.1")
}

func forwardedHeader(t *testing.T, s *site) {
	ip := loopback8
	ip.Header = "forwarded"
	s.oneEach(t, ip)
	s.want(t, 200, "/shop/list", `Forwarded: for="[2001:db8::1]:4711";proto=https`)
	s.want(t, 429, "/shop/list", `Forwarded: for=198.51.100.1, For="[2001:db8::1]"`)
	s.want(t, 200, "/shop/list", "Forwarded: for=203.0.113.1;by=203.0.113.43")
	s.want(t, 429, "/shop/list", "Forwarded: for=evil, for=203.0.113.1")
	s.want(t, 429, "/shop/list", `Forwarded: for="unbalanced, for=203.0.113.1`)
	s.want(t, 200, "/shop/list", "X-Forwarded-For: 203.0.113.1") // another header than the one set
	s.want(t, 429, "/shop/list", "Forwarded: for=_hidden")
}

func namedHeader(t *testing.T, s *site) {
	ip := loopback8
	ip.Header = "X-Real-IP"
	s.oneEach(t, ip)
	s.want(t, 200, "/shop/list", "X-Real-Ip: 203.0.113.1")
	s.want(t, 429, "/shop/list", "X-Real-Ip: 203.0.113.1", "X-Forwarded-For: 203.0.113.9")
	s.want(t, 200, "/shop/list", "X-Real-Ip: 203.0.113.2")
}

func ipv6Prefix(t *testing.T, s *site) {
	s.oneEach(t, loopback8)
	s.want(t, 200, "/shop/list", "X-Forwarded-For: 2001:db8:0:1::1")
	s.want(t, 429, "/shop/list", "X-Forwarded-For: 2001:db8:0:1:ffff::2")
	s.want(t, 200, "/shop/list", "X-Forwarded-For: 2001:db8:0:2::1")
	s.want(t, 200, "/shop/list", "X-Forwarded-For: ::ffff:203.0.113.1") // one IPv4 address, not all
	s.want(t, 200, "/shop/list", "X-Forwarded-For: ::ffff:203.0.113.2")
}

func unixSockets(t *testing.T, s *site) {
	s.network = "unix"
	s.oneEach(t, core.ClientIP{})
	s.want(t, 200, "/shop/list")
	s.want(t, 429, "/shop/list", "X-Forwarded-For: 203.0.113.1")
	s.want(t, 429, "/shop/list", "X-Forwarded-For: 0.0.0.0")
}

func trustedUnixSockets(t *testing.T, s *site) {
	s.network = "unix"
	s.oneEach(t, core.ClientIP{TrustedProxies: []string{"unix"}})
	s.want(t, 200, "/shop/list", "X-Forwarded-For: 203.0.113.1")
	s.want(t, 200, "/shop/list", "X-Forwarded-For: 203.0.113.2")
	s.want(t, 429, "/shop/list", "X-Forwarded-For: 203.0.113.9, 203.0.113.2")
	s.want(t, 200, "/shop/list")
	s.want(t, 429, "/shop/list")
}
