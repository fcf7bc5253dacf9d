package core

import (
	"fmt"
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
	c.add(limit, &compiled)
	return &compiled, nil
}

func (c *limitCache) add(limit Limit, compiled *algorithm.Limit) {
	c.mu.Lock()
	defer c.mu.Unlock()
	next := map[Limit]*algorithm.Limit{limit: compiled}
	if known := c.known.Load(); known != nil {
		if len(*known) >= maxLimits {
			return
		}
		for l, compiled := range *known {
			next[l] = compiled
		}
	}
	c.known.Store(&next)
}

// names remembers what each rule's name stands for on a limiter, because rules of one name share counters.
type names struct {
	mu     sync.Mutex
	limits map[string]Limit      // of names that do not depend on the call
	routes map[string]*boundRule // which unnamed rule has the counters with this key tail
}

// maxNames bounds both tables, for rules that are made up call by call; names beyond are not compared.
const maxNames = 10_000

// claim takes a name for a rule, or says that it stands for another limit.
func (n *names) claim(name string, limit Limit) *RuleError {
	if limit.Algorithm == TokenBucket {
		limit.Burst = limit.atOnce()
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	taken, ok := n.limits[name]
	if ok && taken != limit {
		return &RuleError{
			Rule: name, Field: "Name", Value: name,
			Why: fmt.Sprintf("stands for %v (%v) on this Limiter already, and here for %v (%v): one name, one limit",
				taken, taken.Algorithm, limit, limit.Algorithm),
		}
	}
	if n.limits == nil {
		n.limits = make(map[string]Limit)
	}
	if len(n.limits) < maxNames {
		n.limits[name] = limit
	}
	return nil
}

// claimRoute takes a route's counters for an unnamed rule, or says that another one charges them too.
func (n *names) claimRoute(keyTail string, rule *boundRule) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	if taken, ok := n.routes[keyTail]; ok {
		return taken == rule
	}
	if n.routes == nil {
		n.routes = make(map[string]*boundRule)
	}
	if len(n.routes) < maxNames {
		n.routes[keyTail] = rule
	}
	return true
}
