package operatorlog

import (
	"context"
	"log/slog"
	"net/netip"
	"strings"
)

// sharedNet is the range that providers share among their customers (RFC 6598). Load balancers use
// it, too.
var sharedNet = netip.MustParsePrefix("100.64.0.0/10")

// private reports whether an address is not a public one.
func private(addr netip.Addr) bool {
	return addr.IsPrivate() || addr.IsLoopback() || addr.IsLinkLocalUnicast() || sharedNet.Contains(addr)
}

// UntrustedProxy reports that an untrusted peer sent a header that proxies set. read is the header
// that is read from trusted peers. A peer in a private network is probably a proxy. Any other peer
// may be a stranger, so it is reported separately, for information only.
func (l *Log) UntrustedProxy(peer netip.Addr, header, read string) {
	name := "name it in Options.ClientIP.TrustedProxies"
	if header != read {
		name += `, and "` + header + `" in Options.ClientIP.Header`
	}
	level, about := slog.LevelInfo, "stranger"
	message := "accesslimit: a header that proxies set came from a peer that is not trusted, and was ignored"
	change := "if the peer is your own proxy, " + name + ", or all callers behind it share one counter; otherwise nothing, for any caller can send the header"
	if private(peer) {
		level, about = slog.LevelWarn, "proxy"
		message = "accesslimit: all callers behind a proxy that is not trusted share one counter"
		change = "if the peer is your own proxy, " + name + "; if callers connect from there themselves, nothing, for any caller can send the header"
	}
	if l.untrustedProxies.first(about) {
		l.logger.Log(context.Background(), level, message, slog.String("peer", peer.String()), slog.String("header", header), slog.String("change", change))
	}
}

// NoAddress warns that a rule by IP counts a call without an address. header is the header that is
// read from trusted peers.
func (l *Log) NoAddress(rule string, unixIsTrusted bool, header string) {
	if !l.missingAddresses.first("") {
		return
	}
	change := `if a proxy connects over a unix socket, add "unix" to Options.ClientIP.TrustedProxies; in a test, give the request a RemoteAddr; otherwise set the rule's Key`
	if unixIsTrusted {
		change = "let the proxy on the unix socket set " + header + ", or name the header that it sets in Options.ClientIP.Header"
	}
	l.logger.Warn("accesslimit: calls without an address are counted by IP, and share one counter",
		slog.String("rule", strings.Clone(rule)), slog.String("subject", "ip:unknown"), slog.String("change", change))
}

// NoIdentify warns that a function of a rule asks for the user, but Identify is not set.
func (l *Log) NoIdentify(rule string) {
	if l.missingIdentify.first("") {
		l.logger.Warn("accesslimit: a rule asks who calls, but nothing identifies callers, so ByUser counts them by IP",
			slog.String("rule", strings.Clone(rule)), slog.String("change", "set Options.Identify, or another Key"))
	}
}

// RouteUnknown warns that a rule without a Name, which is named after the route, runs before the
// route is known.
func (l *Log) RouteUnknown(limit string) {
	if l.unknownRoutes.first(limit) {
		l.logger.Warn("accesslimit: a rule without a Name runs before the route is known, so the calls of all routes share one counter",
			slog.String("limit", limit), slog.String("change", "give the rule a Name or Paths, or attach it to each route (for chi there is package chilimit)"))
	}
}

// ParameterMisspelled warns that a rule does not apply to a route because its pattern names the
// route's parameters differently.
func (l *Log) ParameterMisspelled(rule, pattern, route string) {
	if l.misspelledParameters.first(rule) {
		l.logger.Warn("accesslimit: a rule does not apply to a route whose parameters have other names than in its path pattern",
			slog.String("rule", strings.Clone(rule)), slog.String("pattern", pattern), slog.String("route", strings.Clone(route)),
			slog.String("change", "write * for each parameter, which matches in every framework"))
	}
}

// LimitsNobody warns that no call is in the scope of a rule.
func (l *Log) LimitsNobody(rule, why string) {
	if l.limitingNobody.first(rule + ": " + why) {
		l.logger.Warn("accesslimit: a rule limits nobody", slog.String("rule", rule), slog.String("why", why))
	}
}

// MethodsUnknown warns that methods of a rule may be misspelled.
func (l *Log) MethodsUnknown(rule string, methods []string) {
	if l.limitingNobody.first(rule + ": " + strings.Join(methods, " ")) {
		l.logger.Warn("accesslimit: a rule names methods that are not registered: they may be misspelled",
			slog.String("rule", rule), slog.String("methods", strings.Join(methods, " ")))
	}
}

// ChargedTwice warns that a call passes two middlewares that have the same rule.
func (l *Log) ChargedTwice(rule string) {
	if l.doubleCharges.first(rule) {
		l.logger.Warn("accesslimit: a call passes two middlewares with the same rule, and is charged twice",
			slog.String("rule", strings.Clone(rule)),
			slog.String("change", "attach the rule once around each handler: to the whole router, or to its routes. Change nothing if its Key returns another subject in each, or if they are of two Limiters"))
	}
}

// NotText warns that the value by which callers are identified is not a string.
func (l *Log) NotText(key, value string) {
	if l.wrongIdentities.first(key) {
		l.logger.Warn("accesslimit: ContextValue ignores a value that is not a string",
			slog.String("key", key), slog.String("type", value),
			slog.String("change", "leave the name of the user under that key, or set Options.Identify to a function that reads the value"))
	}
}

// NobodyLoggedIn warns that not one of so many calls that needed a login had one.
func (l *Log) NobodyLoggedIn(rule string, calls int) {
	l.logger.Warn("accesslimit: no call that needed a login had one since the service started",
		slog.Int("calls", calls), slog.String("rule", strings.Clone(rule)),
		slog.String("change", "put the limit behind the middleware that authenticates, and let Options.Identify read what that leaves. Change nothing if only strangers have called"))
}

// RouteCountedTwice warns that two rules without a Name charge one counter: they are on one route, or
// on two with the same pattern.
func (l *Log) RouteCountedTwice(route string) {
	if l.doubleCharges.first(route) {
		l.logger.Warn("accesslimit: two rules without a Name share a counter. A call that passes both is charged twice, and two routes of one pattern are counted together",
			slog.String("route", route), slog.String("change", "give one of the rules a Name, or the rule of a whole router Paths"))
	}
}
