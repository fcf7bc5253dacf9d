package core

import (
	"bytes"
	"net/http"
	"net/netip"
	"net/textproto"

	"github.com/accesslimit/accesslimit/core/internal/algorithm"
)

// call is one call while it is being decided: the Request that rules read, and the room to work in. It comes from a pool.
type call struct {
	View
	limiter *Limiter

	asked    []asked // the rules that apply; once counted, one for each counter and verdict
	counters []algorithm.Counter
	verdicts []algorithm.Verdict

	deciding *policy // the rule whose key or cost is being asked for
	paths    []string
	loose    looseness
	subjects []byte
	text     []byte

	client      netip.Addr
	clientKnown bool
	user        string
	userErr     error
	userKnown   bool
}

// asked is a rule that applies to the call, under the name that it counts it by.
type asked struct {
	rule     *boundRule
	policy   *policy
	limit    Limit // the rule's, or what it and others with the same counter both allow
	from, to int   // the subject, in call.subjects
}

// clone is a copy on the heap, so that a loop's variable can stay off it.
func (a asked) clone() *asked { return &a }

// open takes a call from the pool.
func (l *Limiter) open(v View) *call {
	c := l.calls.Get().(*call)
	c.View = v
	return c
}

// close puts the call back, emptied of everything that belongs to it but the room. After a panic in a rule's function it is
// not called, and the collector gets the call.
func (l *Limiter) close(c *call) {
	clear(c.asked)
	clear(c.verdicts)
	clear(c.paths)
	*c = call{
		limiter: l, asked: c.asked[:0], counters: c.counters[:0], verdicts: c.verdicts[:0],
		paths: c.paths[:0], subjects: c.subjects[:0], text: c.text[:0],
	}
	l.calls.Put(c)
}

// addCounter makes room for one more counter and its verdict. Its Key keeps the room of an earlier call's.
func (c *call) addCounter() *algorithm.Counter {
	if len(c.counters) < cap(c.counters) {
		c.counters = c.counters[:len(c.counters)+1]
	} else {
		c.counters = append(c.counters, algorithm.Counter{})
	}
	c.verdicts = append(c.verdicts, algorithm.Verdict{})
	return &c.counters[len(c.counters)-1]
}

// ClientIP implements Request.
func (c *call) ClientIP() netip.Addr {
	if !c.clientKnown {
		c.client, c.clientKnown = c.limiter.clientIPs.of(c.View), true
	}
	return c.client
}

// Header implements Request, for any spelling of the name.
func (c *call) Header(name string) []string {
	return c.View.Header(textproto.CanonicalMIMEHeaderKey(name))
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

// count forms the counters of the rules that apply, and keeps these alone in c.asked. A rule that wants a login is left out
// for nobody, and so are a call that costs nothing and a counter that this call is charged to already. given is the
// subject, "" for each rule's own. It stops at the first reason to refuse.
func (c *call) count(nobody bool, given string) (stopped *asked, reason Reason, err error) {
	defer func() { c.deciding = nil }()
	applying := c.asked
	c.asked = c.asked[:0]
	for i := range applying {
		a := applying[i]
		if nobody && a.rule.NeedLogin {
			continue
		}
		c.deciding = a.policy
		cost := c.cost(&a)
		if cost == 0 {
			continue
		}
		if cost > a.rule.compiled.Max {
			return a.clone(), CostTooHigh, nil
		}
		if err := c.findSubject(&a, given); err != nil {
			return a.clone(), IdentifyFailed, err
		}
		if merged := c.charge(&a, cost); merged == nil {
			c.asked = append(c.asked, a)
		} else if merged.Cost > merged.Limit.Max {
			return a.clone(), CostTooHigh, nil
		}
	}
	return nil, Allowed, nil
}

// charge adds a rule's counter. Where an earlier rule has the same counter, it merges the two and returns that: the call is
// charged once, and of two limits (by user and by IP, for nobody) the smaller holds.
func (c *call) charge(a *asked, cost int64) (merged *algorithm.Counter) {
	counter := c.addCounter()
	counter.Key = appendKey(counter.Key[:0], c.limiter.keyHead, c.subjects[a.from:a.to], a.policy.keyTail)
	counter.Limit, counter.Cost, counter.Required = &a.rule.compiled, cost, a.rule.OnStoreError == FailClosed
	last := len(c.counters) - 1
	for i := range last {
		if earlier := &c.counters[i]; bytes.Equal(earlier.Key, counter.Key) {
			earlier.Cost = max(earlier.Cost, cost)
			earlier.Required = earlier.Required || counter.Required
			c.tighten(i, a)
			c.counters, c.verdicts = c.counters[:last], c.verdicts[:last]
			return earlier
		}
	}
	return nil
}

// tighten makes the counter of an earlier rule hold for a later one too: as many calls and as large a burst as both allow.
// The rule with fewer calls is the one that callers are told of.
func (c *call) tighten(i int, later *asked) {
	earlier, both := c.asked[i].limit, later.limit
	if both.Algorithm == TokenBucket {
		both.Burst = min(earlier.atOnce(), later.limit.atOnce())
	}
	if earlier.Max < both.Max {
		both.Max = earlier.Max
	} else {
		c.asked[i] = *later
	}
	if compiled, err := c.limiter.limits.of(both); err == nil {
		c.counters[i].Limit, c.asked[i].limit = compiled, both
	}
}

// findSubject says whom to count.
func (c *call) findSubject(a *asked, given string) error {
	a.from = len(c.subjects)
	switch {
	case given != "":
		c.subjects = append(c.subjects, given...)
	case a.rule.Key != nil:
		key, err := a.rule.Key(c)
		if err != nil {
			return err
		}
		c.subjects = append(c.subjects, key...)
	case a.rule.NeedLogin:
		c.subjects = append(append(c.subjects, "user:"...), c.user...)
	}
	if len(c.subjects) == a.from {
		c.subjects = c.limiter.clientIPs.appendSubject(c.subjects, c.ClientIP())
	}
	a.to = len(c.subjects)
	return nil
}

// cost is what the call weighs.
func (c *call) cost(a *asked) int64 {
	if a.rule.Cost == nil {
		return 1
	}
	cost := a.rule.Cost(c)
	if cost < 0 {
		c.limiter.complains.negativeCost(a.policy.name, cost)
		return 1
	}
	return int64(cost)
}
