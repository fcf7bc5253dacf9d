package core

import (
	"context"
	"log/slog"
	"net/netip"
	"strings"

	"github.com/accesslimit/accesslimit/core/internal/clientip"
	"github.com/accesslimit/accesslimit/core/internal/cowmap"
)

// once lets each complaint through a single time: it is about how a service is put together, which only a restart changes. What is
// complained of is bounded, because callers may bring it about.
type once struct {
	said cowmap.Map[string, *byte]
}

// first reports whether nobody complained of this before.
func (o *once) first(about string) bool {
	if _, ok := o.said.Get(about); ok {
		return false
	}
	mine := new(byte)
	kept, ok := o.said.Add(strings.Clone(about), mine, maxSubjects)
	return ok && kept == mine
}

// sharedNet is what providers put between their customers and the internet (RFC 6598), and so do load balancers.
var sharedNet = netip.MustParsePrefix("100.64.0.0/10")

// inHouse reports whether an address is none of the internet's.
func inHouse(addr netip.Addr) bool {
	return addr.IsPrivate() || addr.IsLoopback() || addr.IsLinkLocalUnicast() || sharedNet.Contains(addr)
}

// untrustedProxy reports that a peer which is not trusted sent a header of proxies. A peer in a
// private network is probably a proxy. Any other peer may be a stranger, so it is reported
// separately, for information only.
func (c *complaints) untrustedProxy(peer netip.Addr, header, read string) {
	name := "name it in Options.ClientIP.TrustedProxies"
	if header != read {
		name += `, and "` + header + `" in Options.ClientIP.Header`
	}
	level, about := slog.LevelInfo, "stranger"
	what := "accesslimit: a header of proxies came from a peer that is not trusted, and was ignored"
	change := "if the peer is your own proxy, " + name + ", or all callers behind it share one counter; otherwise nothing, for any caller can send the header"
	if inHouse(peer) {
		level, about = slog.LevelWarn, "proxy"
		what = "accesslimit: all callers behind a proxy that is not trusted share one counter"
		change = "if the peer is your own proxy, " + name + "; if callers connect from there themselves, nothing, for any caller can send the header"
	}
	if c.untrusted.first(about) {
		c.logger.Log(context.Background(), level, what, slog.String("peer", peer.String()), slog.String("header", header), slog.String("change", change))
	}
}

// noAddress says that a call is counted by IP and has none.
func (c *complaints) noAddress(rule string, ips *clientip.Finder) {
	if !c.addressless.first("") {
		return
	}
	change := `if a proxy connects over a unix socket, add "unix" to Options.ClientIP.TrustedProxies; in a test, give the request a RemoteAddr; otherwise set the rule's Key`
	if ips.TrustsUnix {
		change = "let the proxy on the unix socket set " + ips.Header + ", or name the header that it sets in Options.ClientIP.Header"
	}
	c.logger.Warn("accesslimit: calls without an address are counted by IP, and share one counter",
		slog.String("rule", strings.Clone(rule)), slog.String("subject", "ip:unknown"), slog.String("change", change))
}

// unrouted says that an unnamed rule is asked before there is a route to name it after.
func (c *complaints) unrouted(limit Limit) {
	if text := limit.phrase(); c.routeless.first(text) {
		c.logger.Warn("accesslimit: a rule without a Name is asked before the route is known: the calls of all routes share one counter",
			slog.String("limit", text), slog.String("change", "give the rule a Name or Paths, or attach it to each route (in chi by With, not Use)"))
	}
}

// sharedRoute says that two unnamed rules charge the same counter.
func (c *complaints) sharedRoute(name string) {
	if c.twice.first(name) {
		c.logger.Warn("accesslimit: two unnamed rules count the same route in one counter, so that its calls are charged twice: "+
			"give the rule of the whole router a Name or Paths", slog.String("route", name))
	}
}

// attachedTwice says that two middlewares around one handler charge the same counter.
func (c *complaints) attachedTwice(rule, route string) {
	if c.twice.first(rule) {
		c.logger.Warn("accesslimit: a rule is attached twice around one handler, so that each call is charged twice",
			slog.String("rule", strings.Clone(rule)), slog.String("route", strings.Clone(route)),
			slog.String("change", "attach the rule to the router or to the route, not to both; give another limit a Name of its own"))
	}
}
