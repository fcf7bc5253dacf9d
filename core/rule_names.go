package core

import (
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/accesslimit/accesslimit/core/internal/codeplace"
)

// ruleNames holds the limits that each rule's name stands for on a limiter, because rules of one
// name share counters.
type ruleNames struct {
	mu     sync.Mutex
	claims map[string][]claim // by name, or by the key tail of rules named after their patterns
	routes map[routeClaim]*boundRule
	// handles holds the own limits of handles with overrides, by name.
	handles map[string]claim
}

// nameOwner is a [RuleSet], as the owner of names. Its fields belong to the ruleNames.
type nameOwner struct {
	names []string // that it has claims to
}

// claim is what a name stands for in the rules of one owner.
type claim struct {
	owner  *nameOwner // nil for rules that were attached one by one
	rule   string
	limits []Limit
	// overrides is Rule.Overrides, in which all rules of this name agree.
	overrides bool
	mode      Mode   // Rule.Mode, in which they agree too
	bans      bool   // a rule of this name has Ban set
	banAfter  int    // the Ban.After of that rule
	place     string // where the rule stands, or was attached
}

// routeClaim is what an unnamed rule counts on a route: a counter by user, or one by IP.
type routeClaim struct {
	keyTail string
	byUser  bool
}

// maxNames bounds both tables, because handlers may make rules in each call. Names beyond it are
// not compared.
const maxNames = 10_000

// claim takes the names of a guard's rules. If one of them stands for something else, it takes none
// and returns that. For the rules of a set, the owner, place returns where a rule stands.
func (n *ruleNames) claim(owner *nameOwner, rules []*boundRule, place func(rule string) string) *nameConflict {
	n.mu.Lock()
	defer n.mu.Unlock()
	fresh, wrong := n.compare(owner, rules, func(claim) bool { return true })
	if len(wrong) > 0 {
		return wrong[0]
	}
	for name, claim := range fresh {
		if known := n.find(name, owner); known != nil {
			known.bans, known.banAfter = known.bans || claim.bans, max(known.banAfter, claim.banAfter)
		} else if n.hasRoom(name) {
			claim.place = place(claim.rule)
			n.add(name, claim)
		}
	}
	return nil
}

// replace takes the names of a set's rules, in place of those that the set had. If some of them
// stand for something else elsewhere, it changes nothing and returns them.
func (n *ruleNames) replace(owner *nameOwner, rules []*boundRule, place func(rule string) string) []*nameConflict {
	n.mu.Lock()
	defer n.mu.Unlock()
	fresh, wrong := n.compare(owner, rules, func(c claim) bool { return c.owner != owner })
	if len(wrong) > 0 {
		return wrong
	}
	for _, name := range owner.names {
		n.remove(name, owner)
	}
	owner.names = owner.names[:0]
	for name, claim := range fresh {
		if n.hasRoom(name) {
			claim.place = place(claim.rule)
			n.add(name, claim)
		}
	}
	return nil
}

// compare returns what the rules claim for an owner, and those whose names stand for something
// else, among them or in the claims that stay.
func (n *ruleNames) compare(owner *nameOwner, rules []*boundRule, stays func(claim) bool) (fresh map[string]claim, wrong []*nameConflict) {
	fresh = make(map[string]claim)
	for _, rule := range rules {
		if rule.fixed == nil {
			continue
		}
		name, limits := rule.claims()
		own := claim{owner: owner, rule: rule.fixed.name, limits: limits, overrides: rule.Overrides, mode: rule.Mode, bans: rule.Ban != Ban{}, banAfter: rule.Ban.After}
		taken, among := fresh[name]
		conflicts := func(c claim) bool { return stays(c) && own.differs(c) }
		if at := slices.IndexFunc(n.claims[name], conflicts); at >= 0 {
			wrong = append(wrong, &nameConflict{n.claims[name][at], own})
		} else if among && own.differs(taken) {
			wrong = append(wrong, &nameConflict{taken, own})
		} else if handle, ok := n.handles[name]; ok && own.overrides && !limits[0].sharesCounter(handle.limits[0]) {
			wrong = append(wrong, &nameConflict{handle, own}) // no override could hold for both
		}
		own.bans, own.banAfter = own.bans || taken.bans, max(own.banAfter, taken.banAfter)
		fresh[name] = own
	}
	return fresh, wrong
}

// differs reports whether a name cannot stand for both claims.
func (c claim) differs(other claim) bool {
	return !slices.Equal(c.limits, other.limits) || c.overrides != other.overrides || c.mode != other.mode
}

// find returns the claim of an owner to a name, or nil.
func (n *ruleNames) find(name string, owner *nameOwner) *claim {
	for i := range n.claims[name] {
		if n.claims[name][i].owner == owner {
			return &n.claims[name][i]
		}
	}
	return nil
}

// hasRoom reports whether a claim to the name can be kept.
func (n *ruleNames) hasRoom(name string) bool {
	return n.claims[name] != nil || len(n.claims) < maxNames
}

// add keeps a new claim.
func (n *ruleNames) add(name string, c claim) {
	if n.claims == nil {
		n.claims = make(map[string][]claim)
	}
	n.claims[name] = append(n.claims[name], c)
	if c.owner != nil {
		c.owner.names = append(c.owner.names, name)
	}
}

// remove gives up the claim of an owner to a name.
func (n *ruleNames) remove(name string, owner *nameOwner) {
	left := slices.DeleteFunc(n.claims[name], func(c claim) bool { return c.owner == owner })
	if n.claims[name] = left; len(left) == 0 {
		delete(n.claims, name)
	}
}

// nameConflict is a rule whose name stands for something else already.
type nameConflict struct {
	taken, own claim
}

// error returns the conflict as an error. here is where the rule is being attached, or "" if the
// reader of the error knows that.
func (c *nameConflict) error(here string) *RuleError {
	taken, own, why := limitsText(c.taken.limits), limitsText(c.own.limits), "one name, one limit"
	switch {
	case c.taken.mode != c.own.mode:
		taken, own = fmt.Sprintf("Mode: %v", c.taken.mode), fmt.Sprintf("Mode: %v", c.own.mode)
		why = "a soft rule refuses nobody, so it cannot share counters with a rule that does"
	case slices.Equal(c.taken.limits, c.own.limits):
		taken, own = fmt.Sprintf("Overrides: %t", c.taken.overrides), fmt.Sprintf("Overrides: %t", c.own.overrides)
		why = "rules of one name share their overrides"
	}
	return &RuleError{
		Rule: c.own.rule, Field: "Name", Code: "name_conflict", Value: c.own.rule,
		Why: fmt.Sprintf("stands for %s on this Limiter already%s, and here%s for %s: %s",
			taken, inBrackets(c.taken.place), inBrackets(here), own, why),
	}
}

func inBrackets(place string) string {
	if place == "" {
		return ""
	}
	return " (" + place + ")"
}

// claimHandle takes a name for a handle with overrides. It reports whether it could: not if the
// overrides of the name are made for another span or algorithm.
func (n *ruleNames) claimHandle(name string, limit Limit) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, c := range n.claims[name] {
		if c.overrides && !c.limits[0].sharesCounter(limit) {
			return false
		}
	}
	if taken, ok := n.handles[name]; ok {
		return taken.limits[0].sharesCounter(limit)
	}
	if n.handles == nil {
		n.handles = make(map[string]claim)
	}
	if len(n.handles) < maxNames {
		n.handles[name] = claim{limits: []Limit{limit}, overrides: true, place: codeplace.OfCaller()}
	}
	return true
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
	if b.Name != "" && b.Mode != DryRun {
		return b.Name, limits
	}
	return b.fixed.limits[0].counted.KeyTail, limits
}

// claimRoute takes a route's counters for an unnamed rule. It reports whether it could: not if
// another rule has them.
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
