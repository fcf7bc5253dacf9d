package core

import (
	"net"
	"net/netip"
	"net/textproto"
	"strings"

	"github.com/accesslimit/accesslimit/core/internal/clientip"
)

// ClientIP implements Request.
func (c *call) ClientIP() netip.Addr {
	if !c.clientKnown {
		c.findClient()
	}
	return c.client
}

// findClient finds the caller's address. It runs once a call, except that a call that inspects
// repeats it until a rule needs the address.
func (c *call) findClient() {
	ips := c.parts.clientIPs
	c.client, c.clientKnown = clientip.Plain(c.RemoteAddr()), true
	if ips.Trusts(c.client) {
		c.client = ips.Behind(c.client, c.View.Header(ips.Header))
	}
	if c.inspects {
		if c.clientKnown = c.deciding != nil; c.clientKnown {
			c.inspectProxies()
		}
	}
}

// addressToCount returns the caller's address for a rule that counts by it.
func (c *call) addressToCount() netip.Addr {
	addr := c.ClientIP()
	if ips := c.parts.clientIPs; !addr.IsValid() && !c.LooksOnly() {
		c.log.NoAddress(c.Rule(), ips.TrustsUnix, ips.Header)
	}
	return addr
}

// ipSubject returns the subject of the caller's address: see ByIP.
func (c *call) ipSubject() string { return c.parts.clientIPs.Subject(c.addressToCount()) }

// inspectProxies warns if a peer that is not trusted sends a header that proxies send.
func (c *call) inspectProxies() {
	ips, peer := c.parts.clientIPs, clientip.Plain(c.RemoteAddr())
	if !peer.IsValid() || ips.Trusts(peer) {
		return
	}
	for _, name := range [...]string{ips.Header, "X-Forwarded-For", "Forwarded"} {
		if len(c.View.Header(name)) > 0 {
			c.log.UntrustedProxy(peer, name, ips.Header)
			return
		}
	}
}

// Header implements Request, for any spelling of the name.
func (c *call) Header(name string) []string {
	name = textproto.CanonicalMIMEHeaderKey(name)
	if name != "Host" {
		return c.View.Header(name)
	}
	if host := c.View.Host(); host != "" {
		return []string{strings.ToLower(host)} // or a caller would have a counter for each spelling
	}
	return nil
}

// Host implements Request. It removes the port and a trailing dot, because a caller could otherwise
// spell the same host in several ways.
func (c *call) Host() string {
	host := strings.ToLower(c.View.Host())
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	return strings.TrimSuffix(strings.Trim(host, "[]"), ".")
}

// User implements Request. It calls Identify once.
func (c *call) User() (string, error) {
	if c.deciding != nil && !c.deciding.readsUser.Load() {
		c.deciding.readsUser.Store(true)
		if !c.userKnown && c.parts.options.Identify == nil {
			c.log.NoIdentify(c.deciding.name)
		}
	}
	if !c.userKnown && c.parts.options.Identify != nil {
		c.userKnown = true
		c.user, c.userErr = c.parts.options.Identify(c)
		if c.userErr != nil {
			c.user = ""
		}
	}
	return c.user, c.userErr
}

// Rule implements Request.
func (c *call) Rule() string {
	if c.deciding == nil {
		return ""
	}
	return c.deciding.name
}
