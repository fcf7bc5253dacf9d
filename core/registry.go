package core

import (
	"fmt"
	"maps"
	"sync"
	"sync/atomic"

	"github.com/accesslimit/accesslimit/core/internal/algorithm"
)

// limitCache keeps the compiled form of limits that direct calls bring, so that a call compiles nothing. Reading it takes
// no lock.
type limitCache struct {
	known atomic.Pointer[map[Limit]*algorithm.Limit]
	mu    sync.Mutex
}

// maxLimits bounds the cache; limits beyond it are compiled each time.
const maxLimits = 1000

func (c *limitCache) of(limit Limit) (*algorithm.Limit, error) {
	if known := c.known.Load(); known != nil {
		if compiled := (*known)[limit]; compiled != nil {
			return compiled, nil
		}
	}
	compiled, err := limit.compile()
	if err != nil {
		return nil, err
	}
	if known := c.known.Load(); known == nil || len(*known) < maxLimits {
		c.add(limit, &compiled)
	}
	return &compiled, nil
}

func (c *limitCache) add(limit Limit, compiled *algorithm.Limit) {
	c.mu.Lock()
	defer c.mu.Unlock()
	next := map[Limit]*algorithm.Limit{limit: compiled}
	if known := c.known.Load(); known != nil {
		maps.Copy(next, *known)
	}
	c.known.Store(&next)
}

// names remembers what each rule's name stands for on a limiter, because rules of one name share counters.
type names struct {
	mu     sync.Mutex
	limits map[string]Limit // by name, or by the key tail of rules named after their patterns
	routes map[routeClaim]*boundRule
}

// routeClaim is what an unnamed rule counts on a route: a counter by user, or one by IP.
type routeClaim struct {
	keyTail string
	byUser  bool
}

// maxNames bounds both tables, for rules that are made up call by call; names beyond are not compared.
const maxNames = 10_000

// claim takes the names of a guard's rules, or says which of them stands for another limit, taking none.
func (n *names) claim(rules []*boundRule) *RuleError {
	n.mu.Lock()
	defer n.mu.Unlock()
	fresh := make(map[string]Limit)
	for _, rule := range rules {
		if rule.fixed == nil {
			continue
		}
		key, limit := rule.claims()
		taken, ok := n.limits[key]
		if !ok {
			taken, ok = fresh[key]
		}
		if ok && taken != limit {
			return &RuleError{
				Rule: rule.fixed.name, Field: "Name", Value: rule.fixed.name,
				Why: fmt.Sprintf("stands for %v (%v) on this Limiter already, and here for %v (%v): one name, one limit",
					taken, taken.Algorithm, limit, limit.Algorithm),
			}
		}
		fresh[key] = limit
	}
	if n.limits == nil {
		n.limits = make(map[string]Limit)
	}
	if len(n.limits) < maxNames {
		maps.Copy(n.limits, fresh)
	}
	return nil
}

// claims is what must stand for one limit: a name that was given, or the counters of a rule that is named after its
// patterns, which may have several spans.
func (b *boundRule) claims() (key string, limit Limit) {
	limit = b.limit
	if limit.Algorithm == TokenBucket {
		limit.Burst = limit.atOnce()
	}
	if b.Name != "" {
		return b.Name, limit
	}
	return b.fixed.keyTail, limit
}

// claimRoute takes a route's counters for an unnamed rule, or says that another one charges them too.
func (n *names) claimRoute(claim routeClaim, rule *boundRule) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	if taken, ok := n.routes[claim]; ok {
		return taken == rule
	}
	if n.routes == nil {
		n.routes = make(map[routeClaim]*boundRule)
	}
	if len(n.routes) < maxNames {
		n.routes[claim] = rule
	}
	return true
}
