package route

import "sync"

// maxClaims bounds the claims, because handlers may make rules in each call. Those beyond it are not
// compared.
const maxClaims = 10_000

// Claim is what an unnamed rule counts on a route: a counter by user, or one by IP.
type Claim struct {
	KeyTail string
	ByUser  bool
}

// Claims knows which unnamed rule counts which route. Its zero value is empty. It is safe for
// concurrent use.
type Claims[R comparable] struct {
	mu    sync.Mutex
	taken map[Claim]R
}

// Take takes a route's counters for a rule, and reports whether no other rule has them.
func (c *Claims[R]) Take(claim Claim, rule R) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if taken, ok := c.taken[claim]; ok {
		return taken == rule
	}
	if c.taken == nil {
		c.taken = make(map[Claim]R)
	}
	if len(c.taken) < maxClaims {
		c.taken[claim] = rule
	}
	return true
}
