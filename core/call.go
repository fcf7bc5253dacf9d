package core

import (
	"net/netip"
	"net/textproto"
	"strings"
	"sync"

	"github.com/accesslimit/accesslimit/core/adapter"
	"github.com/accesslimit/accesslimit/core/internal/clientip"
	"github.com/accesslimit/accesslimit/core/internal/engine"
	"github.com/accesslimit/accesslimit/core/internal/limitheader"
	"github.com/accesslimit/accesslimit/core/internal/pathmatch"
	"github.com/accesslimit/accesslimit/core/internal/route"
)

// call is the state of one call of a middleware while it is decided. It implements the Request that
// rules read. Calls come from a pool.
type call struct {
	adapter.View
	decider

	tried    []appliedRule // rules in DryRun that apply; the others are in decider.rules
	skipped  []string      // names of rules whose Skip ignored the call, and whose calls are settled
	check    *attachment   // that of the Check that asks, or nil
	subject  string        // replaces the key of every rule of a Check; "" keeps each rule's own
	shows    bool          // the call only shows limits: see OwnLimits
	decided  bool          // no function of the service owner's panicked
	ruling   ruling        // see ruleBy
	deciding *namedRule    // the rule whose functions are running
	unit     int64         // how many bytes a permit stands for, if CostBySize computed the cost; otherwise 0
	readings pathmatch.Readings

	looksFurtherOut bool         // for rules that a middleware further out has charged already
	repeated        *appliedRule // such a rule, or nil

	inspects        bool // this call looks for mistakes in how the service is put together
	untilInspection int  // how many calls of this object remain until the next inspection

	client      netip.Addr
	clientKnown bool
	user        string
	userErr     error
	userKnown   bool

	headers limitheader.Writer // of this call and later ones
}

// inspectEvery sets how often a call looks for mistakes in how the service is put together: once in
// so many calls. Reading two headers in each call, to find a proxy that is not trusted, would take
// a tenth of the middleware's time. It is a prime, so that each of several middlewares around a
// handler has its turn.
const inspectEvery = 127

func newCall(parts *callParts) *call {
	c := &call{
		inspects: true, headers: limitheader.Writer{Style: limitheader.Style(parts.options.Headers), BindsMore: engine.BindsMore},
	}
	c.init(parts)
	return c
}

// ruling is what was decided about a call by a rule, and not by one of its limits.
type ruling struct {
	reason Reason
	by     *appliedRule
	limit  *Limit
	cause  error
}

// ruleBy returns the ruling by a rule for a reason that no counter gave. The call keeps it, because few
// calls have one.
func (c *call) ruleBy(reason Reason, a *appliedRule, cause error) *ruling {
	c.ruling = ruling{reason: reason, by: a, limit: &a.rule.limits[0], cause: cause}
	return &c.ruling
}

// clear empties what was decided of the call.
func (c *call) clear() {
	c.decider.clear()
	c.tried, c.skipped = c.tried[:0], c.skipped[:0]
	if c.ruling.by != nil {
		c.ruling = ruling{}
	}
}

// callPool holds the calls of a limiter's middlewares between two uses.
type callPool struct{ sync.Pool }

// open takes a call from the pool.
func (p *callPool) open(v adapter.View) *call {
	c := p.Get().(*call)
	c.View = v
	return c
}

// close empties the call and puts it back. If a function of the service owner panicked, the call is
// not decided. Then close ends the call instead, and leaves it to the garbage collector.
func (p *callPool) close(c *call) {
	if !c.decided {
		c.abandon()
		return
	}
	c.clear()
	c.readings.Clear()
	c.View, c.shows, c.decided, c.clientKnown = nil, false, false, false
	c.looksFurtherOut, c.repeated = false, nil
	if c.check != nil {
		c.check, c.subject = nil, ""
	}
	if c.inspects {
		c.untilInspection = inspectEvery
	}
	c.untilInspection--
	c.inspects = c.untilInspection == 0
	if c.userKnown {
		c.userKnown, c.user, c.userErr = false, "", nil
	}
	p.Put(c)
}

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
	if ips.Trusts(c.client) && !peerHidden(c.View, c.client) {
		c.client = ips.Behind(c.client, c.View.Header(ips.Header))
	}
	if c.inspects {
		if c.clientKnown = c.deciding != nil; c.clientKnown {
			c.inspectProxies()
		}
	}
}

// peerHidden reports whether a call has no peer because its adapter cannot see it. Such a peer is not
// trusted as "unix", because it may be anybody.
func peerHidden(v adapter.View, peer netip.Addr) bool { return !peer.IsValid() && hidesPeer(v) }

// hidesPeer reports whether the adapter of a call without a peer cannot see it.
func hidesPeer(v adapter.View) bool {
	hidden, ok := v.(adapter.HiddenPeerView)
	return ok && hidden.PeerHidden()
}

// addressToCount returns the caller's address for a rule that counts by it. A call that only shows limits
// is not counted, so nobody is warned of it.
func (c *call) addressToCount() netip.Addr {
	addr := c.ClientIP()
	if ips := c.parts.clientIPs; !addr.IsValid() && !c.shows {
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

// Host implements Request.
func (c *call) Host() string { return route.Host(c.View.Host()) }

// warnOfValue logs that ContextValue found a value of another type than string.
func (c *call) warnOfValue(key, value string) { c.log.NotText(key, value) }

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
