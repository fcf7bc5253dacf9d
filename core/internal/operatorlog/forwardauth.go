package operatorlog

import (
	"log/slog"
	"net/netip"
)

// UntrustedAuthRequest warns that a peer that is not trusted asked whether a call may go on.
func (l *Log) UntrustedAuthRequest(peer netip.Addr) {
	l.untrustedAuthRequests.log("", func(times int) {
		l.logger.Warn("accesslimit: a peer that is not trusted asked whether it may forward a call, and got 403",
			slog.String("peer", nameOf(peer)), slog.Int("times", times),
			slog.String("change", "if the peer is your own proxy, name it in Options.ClientIP.TrustedProxies, or none of its calls passes; otherwise let only your proxies reach the handler"))
	})
}

// UnreadableAuthRequest warns that a trusted proxy asked about a call, and did not say which.
func (l *Log) UnreadableAuthRequest(peer netip.Addr, why string) {
	l.unreadableAuthRequests.log(why, func(times int) {
		l.logger.Warn("accesslimit: a proxy asked whether it may forward a call that it did not describe, and got 403",
			slog.String("why", why), slog.String("peer", nameOf(peer)), slog.Int("times", times),
			slog.String("change", "let the proxy set X-Forwarded-Method, X-Forwarded-Uri and X-Forwarded-Host on each such request; nothing if a client sent a wrong target"))
	})
}

// nameOf returns the address of a peer, which has none over a unix socket.
func nameOf(peer netip.Addr) string {
	if !peer.IsValid() {
		return "a unix socket"
	}
	return peer.String()
}
