package core

import (
	"maps"
	"slices"
)

// What operators, and the process itself, ask about the names of rules.

// overridable returns the own limit of the rules or handles of a name that have overrides, if there
// are any. Rules in DryRun, whose limit may be another, obey the overrides of their name.
func (n *ruleNames) overridable(name string) (own Limit, ok bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, c := range n.claims[name] {
		if c.overrides {
			return c.limits[0], true
		}
	}
	if taken, ok := n.handles[name]; ok {
		return taken.limits[0], true
	}
	for _, claims := range n.claims { // a rule in DryRun claims the tail of its keys
		for _, c := range claims {
			if c.rule == name && c.overrides {
				return c.limits[0], true
			}
		}
	}
	return Limit{}, false
}

// obeying returns the names of the rules that a ban or a block may make refuse a call. Some of
// them are in it twice.
func (n *ruleNames) obeying() (banned, overridden []string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for name, claims := range n.claims {
		for _, c := range claims {
			if c.bans && c.rule == name { // a rule in DryRun claims the tail of its keys
				banned = append(banned, name)
			}
			if c.overrides && c.mode != Soft && c.rule == name {
				overridden = append(overridden, name)
			}
		}
	}
	return banned, slices.AppendSeq(overridden, maps.Keys(n.handles))
}

// ignoresBans reports whether rules of this name are known, and none of them has Ban set.
func (n *ruleNames) ignoresBans(name string) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	claims := n.claims[name]
	return len(claims) > 0 && !slices.ContainsFunc(claims, func(c claim) bool { return c.bans })
}

// banAfter returns the Ban.After of the rules of this name, or 0 if none is known that has it.
func (n *ruleNames) banAfter(name string) (after int) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, c := range n.claims[name] {
		after = max(after, c.banAfter)
	}
	return after
}
