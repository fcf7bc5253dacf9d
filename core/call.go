package core

import (
	"net/netip"
	"sync"

	"github.com/accesslimit/accesslimit/core/adapter"
	"github.com/accesslimit/accesslimit/core/internal/engine"
	"github.com/accesslimit/accesslimit/core/internal/limitheader"
	"github.com/accesslimit/accesslimit/core/internal/pathmatch"
)

// call is the state of one call of a middleware while it is decided. It implements the Request that
// rules read. Calls come from a pool.
type call struct {
	adapter.View
	decider

	uncounted []*appliedRule // rules in DryRun that would have refused the call before their counters were asked
	decided   bool           // no function of the service owner's panicked
	ruling    ruling         // see ruleBy
	deciding  *namedRule     // the rule whose functions are running
	bySize    bool           // the cost was computed by CostBySize
	readings  pathmatch.Readings

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
	c.uncounted = c.uncounted[:0]
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
	c.View, c.decided, c.clientKnown = nil, false, false
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
