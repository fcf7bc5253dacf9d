package core

import (
	"fmt"
	"slices"
	"strings"
	"sync"
)

// names remembers what each rule's name stands for on a limiter, because rules of one name share
// counters.
type names struct {
	mu     sync.Mutex
	claims map[string]claim // by name, or by the key tail of rules named after their patterns
	routes map[routeClaim]*boundRule
}

// claim is what a name stands for.
type claim struct {
	limits []Limit
	bans   bool // whether a rule of this name listens to bans
}

// routeClaim is what an unnamed rule counts on a route: a counter by user, or one by IP.
type routeClaim struct {
	keyTail string
	byUser  bool
}

// maxNames bounds both tables, for rules that are made up call by call; names beyond are not
// compared.
const maxNames = 10_000

// claim takes the names of a guard's rules, or says which of them stands for another limit, taking
// none.
func (n *names) claim(rules []*boundRule) *RuleError {
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
	n.keep(fresh)
	return nil
}

// keep stores the new claims.
func (n *names) keep(fresh map[string]claim) {
	if len(n.claims) >= maxNames {
		return
	}
	for name, claim := range fresh {
		if known, ok := n.claims[name]; !ok || known.bans != claim.bans {
			n.claims[name] = claim
		}
	}
}

// deaf reports whether rules of this name are known, and none of them has Ban set.
func (n *names) deaf(name string) bool {
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

// claims is what must stand for the same limits: a name that was subject, or the counters of a rule
// that is named after its patterns, which may have several spans. A rule that is only tried has
// counters of its own, and stands for nothing.
func (b *boundRule) claims() (key string, limits []Limit) {
	for _, limit := range b.limits {
		limits = append(limits, limit.normal())
	}
	if b.Name != "" && !b.DryRun {
		return b.Name, limits
	}
	return b.fixed.limits[0].keyTail, limits
}

// claimRoute takes a route's counters for an unnamed rule, or says that another one charges them
// too.
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
