package core

import (
	"net"
	"net/http"
	"net/netip"
	"net/textproto"
	"strings"

	"github.com/accesslimit/accesslimit/core/internal/algorithm"
)

// call is one call while it is being decided: the Request that rules read, and the room to work in. It comes from a pool.
type call struct {
	View
	limiter *Limiter
	id      uint64 // of its first charge: others for each call, as long as this object lives in the pool
	stripe  uint32 // where its decisions are counted
	looks   bool   // this call looks for mistakes in how the service is put together
	toLook  int    // how many calls of this object until the next that does, without this one

	applying []asked // the rules that are for this call
	asked    []asked // what they ask, one for each counter and verdict
	counters []algorithm.Counter
	verdicts []algorithm.Verdict

	decided  bool    // no function of the owner's panicked while the call was decided
	passed   bool    // all that may refuse let the call pass: it was charged
	holder   string  // of this call's slots, once it asked for one
	deciding *policy // the rule whose key or cost is being asked for
	bySize   bool    // the cost was computed by CostBySize
	paths    []string
	loose    looseness
	subjects []byte
	watched  []int // the places of a rule's counters, while they are being added
	weighed  []weighed
	recalls  bool // the counters are only to find a remembered refusal
	text     []byte
	telling  []*quota // several limits that headers tell
	joined   []*quota // those of an earlier call
	policies string   // and their RateLimit-Policy

	client      netip.Addr
	clientKnown bool
	user        string
	userErr     error
	userKnown   bool
}

// asked is a rule that applies to the call, under the name that it counts it by; once counted, one of its limits, or its ban.
type asked struct {
	rule     *boundRule
	policy   *policy
	quota    *quota
	limit    *Limit                // the quota's, or what it and others with the same counter both allow
	count    func(status int) bool // the rule's Count, or of several with this counter what any of them counts
	isBan    bool                  // the counter is the rule's ban, which stands behind its limits
	banned   bool                  // the ban holds, and this speaks for it
	from, to int                   // the subject, in call.subjects
}

// asks makes it one of the rule's limits.
func (a *asked) asks(q *quota) { a.quota, a.limit, a.count = q, &q.limit, a.rule.Count }

// shown reports whether the response describes this limit: not if it is only tried, and not if it
// is a ban that is silent.
func (a *asked) shown() bool { return !a.rule.DryRun && !a.silent() }

// silent reports whether this is a ban with nothing to report: it lets the call pass, or a limit of
// its rule is reported instead.
func (a *asked) silent() bool { return a.isBan && !a.banned }

// lookEvery is of how many calls one looks for mistakes in how the service is put together. It is a prime, so that it is not always
// the same middleware of several around a handler that looks.
const lookEvery = 127

// open takes a call from the pool.
func (l *Limiter) open(v View) *call {
	c := l.calls.Get().(*call)
	c.View = v
	return c
}

// close puts the call back, emptied of everything that belongs to it but the room. If a function of
// the owner's panicked, so that the call is not decided, it ends the call, and the collector gets it.
func (l *Limiter) close(c *call) {
	if !c.decided {
		c.abandon()
		return
	}
	c.id += 1 + uint64(len(c.counters))
	clear(c.paths)
	c.applying, c.asked, c.counters, c.verdicts = c.applying[:0], c.asked[:0], c.counters[:0], c.verdicts[:0]
	c.paths, c.subjects, c.weighed = c.paths[:0], c.subjects[:0], c.weighed[:0]
	c.View, c.decided, c.passed, c.loose, c.clientKnown = nil, false, false, exact, false
	if c.looks {
		c.toLook = lookEvery
	}
	c.toLook--
	c.looks = c.toLook == 0
	if c.holder != "" {
		c.holder = ""
	}
	if c.userKnown {
		c.userKnown, c.user, c.userErr = false, "", nil
	}
	l.calls.Put(c)
}

// addCounter makes room for one more counter and its verdict. Its Key keeps the room of an earlier
// call's. The caller must set Dry and Personal. Resetting them here as well took a fifth of a call's
// cycles: see BenchmarkCheck, "no headers".
func (c *call) addCounter() *algorithm.Counter {
	if len(c.counters) < cap(c.counters) {
		c.counters = c.counters[:len(c.counters)+1]
	} else {
		c.counters = append(c.counters, algorithm.Counter{})
	}
	c.verdicts = append(c.verdicts, algorithm.Verdict{})
	counter := &c.counters[len(c.counters)-1]
	counter.Key, counter.Limit, counter.Cost, counter.Mark = counter.Key[:0], nil, 0, "" // one by one, for nothing large is moved then
	counter.Required, counter.Lease, counter.LocalShare, counter.Watched = false, 0, 0, nil
	return counter
}

// ClientIP implements Request.
func (c *call) ClientIP() netip.Addr {
	if !c.clientKnown {
		c.findClient()
	}
	return c.client
}

// findClient finds the caller's address once, or in a call that looks for mistakes until a rule needs it.
func (c *call) findClient() {
	c.client, c.clientKnown = c.limiter.clientIPs.of(c.View), true
	if c.looks {
		if c.clientKnown = c.deciding != nil; c.clientKnown {
			c.lookForProxies()
		}
	}
}

// countedByIP returns the caller's address, by which a rule counts.
func (c *call) countedByIP() netip.Addr {
	addr := c.ClientIP()
	if !addr.IsValid() {
		c.limiter.complains.noAddress(c.Rule(), c.limiter.clientIPs)
	}
	return addr
}

// lookForProxies warns if a peer that is not trusted sends what proxies send.
func (c *call) lookForProxies() {
	ips, peer := c.limiter.clientIPs, plain(c.RemoteAddr())
	if !peer.IsValid() || ips.trusts(peer) {
		return
	}
	for _, name := range [...]string{ips.header, "X-Forwarded-For", "Forwarded"} {
		if len(c.View.Header(name)) > 0 {
			c.limiter.complains.untrustedProxy(peer, name, ips.header)
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
		return []string{strings.ToLower(host)} // callers are not to have a counter for each spelling
	}
	return nil
}

// Host implements Request. The port and a trailing dot go, because a caller could choose another
// spelling of the same host with them.
func (c *call) Host() string {
	host := strings.ToLower(c.View.Host())
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	return strings.TrimSuffix(strings.Trim(host, "[]"), ".")
}

// Cookie implements Request.
func (c *call) Cookie(name string) string {
	lines := c.Header("Cookie")
	if len(lines) == 0 {
		return ""
	}
	r := http.Request{Header: http.Header{"Cookie": lines}}
	cookie, err := r.Cookie(name)
	if err != nil {
		return ""
	}
	return cookie.Value
}

// User implements Request. It asks once.
func (c *call) User() (string, error) {
	if c.deciding != nil && !c.deciding.asksUser.Load() {
		c.deciding.asksUser.Store(true)
	}
	if !c.userKnown && c.limiter.options.Identify != nil {
		c.userKnown = true
		c.user, c.userErr = c.limiter.options.Identify(c)
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
