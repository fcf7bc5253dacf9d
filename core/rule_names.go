package core

import (
	"fmt"
	"slices"
	"strings"
	"sync"
)

// ruleNames holds the limits that each rule's name stands for on a limiter, because rules of one
// name share counters.
type ruleNames struct {
	mu     sync.Mutex
	claims map[string]claim // by name, or by the key tail of rules named after their patterns
	routes map[routeClaim]*boundRule
}

// claim is what a name stands for.
type claim struct {
	limits []Limit
	bans   bool // a rule of this name has Ban set
}

// routeClaim is what an unnamed rule counts on a route: a counter by user, or one by IP.
type routeClaim struct {
	keyTail string
	byUser  bool
}

// maxNames bounds both tables, because handlers may make rules in each call. Names beyond it are
// not compared.
const maxNames = 10_000

// claim takes the names of a guard's rules. If one of them stands for another limit, it takes none
// and returns why.
func (n *ruleNames) claim(rules []*boundRule) *RuleError {
	n.mu.Lock()
	defer n.mu.Unlock()
	fresh := make(map[string]claim)
	for _, rule := range rules {
		if rule.fixed == nil {
			continue
		}
		key, limits := rule.claims()
		taken, ok := fresh[key]
		if !ok {
			taken, ok = n.claims[key]
		}
		if ok && !slices.Equal(taken.limits, limits) {
			return &RuleError{
				Rule: rule.fixed.name, Field: "Name", Value: rule.fixed.name,
				Why: fmt.Sprintf("stands for %s on this Limiter already, and here for %s: one name, one limit",
					limitsText(taken.limits), limitsText(limits)),
			}
		}
		fresh[key] = claim{limits, taken.bans || rule.Ban != Ban{}}
	}
	if n.claims == nil {
		n.claims = make(map[string]claim)
	}
	n.add(fresh)
	return nil
}

// add stores the new claims.
func (n *ruleNames) add(fresh map[string]claim) {
	if len(n.claims) >= maxNames {
		return
	}
	for name, claim := range fresh {
		if known, ok := n.claims[name]; !ok || known.bans != claim.bans {
			n.claims[name] = claim
		}
	}
}

// ignoresBans reports whether rules of this name are known, and none of them has Ban set.
func (n *ruleNames) ignoresBans(name string) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	taken, ok := n.claims[name]
	return ok && !taken.bans
}

func limitsText(limits []Limit) string {
	texts := make([]string, len(limits))
	for i, limit := range limits {
		texts[i] = limit.String()
	}
	return strings.Join(texts, " and ")
}

// claims returns what must stand for the same limits everywhere: the rule's Name, or the counters
// of a rule that is named after its patterns, which may have several spans. A rule in DryRun has
// counters of its own, and does not claim its Name.
func (b *boundRule) claims() (key string, limits []Limit) {
	for _, limit := range b.limits {
		limits = append(limits, limit.normal())
	}
	if b.Name != "" && !b.DryRun {
		return b.Name, limits
	}
	return b.fixed.limits[0].keyTail, limits
}

// claimRoute takes a route's counters for an unnamed rule. It reports false if another rule has
// them.
func (n *ruleNames) claimRoute(claim routeClaim, rule *boundRule) bool {
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
