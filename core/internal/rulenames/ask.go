package rulenames

import (
	"maps"
	"slices"
)

// Questions that operators and the process itself ask about the names of rules.

// Overridable returns the own limit of the rules or handles of a name that have overrides, if there
// are any. Rules in DryRun obey the overrides of their name too, although their limit may differ.
func (t *Table[L]) Overridable(name string) (own L, ok bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, c := range t.claims[name] {
		if c.Overrides {
			return c.Limits[0], true
		}
	}
	if taken, ok := t.handles[name]; ok {
		return taken.Limits[0], true
	}
	for _, claims := range t.claims { // a rule in DryRun claims the tail of its keys
		for _, c := range claims {
			if c.Rule == name && c.Overrides {
				return c.Limits[0], true
			}
		}
	}
	return own, false
}

// Obeying returns the names of the rules that obey bans, and of those that obey overrides. Some
// names may occur twice. A rule in DryRun has bans of its own.
func (t *Table[L]) Obeying() (banned, overridden []string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for name, claims := range t.claims {
		for _, c := range claims {
			if c.Bans && !c.DryRun {
				banned = append(banned, c.Rule)
			}
			if c.Overrides && !c.Soft && c.Rule == name { // a rule in DryRun claims the tail of its keys
				overridden = append(overridden, name)
			}
		}
	}
	return banned, slices.AppendSeq(overridden, maps.Keys(t.handles))
}

// Bans reports whether rules of this name are known, whether one of them has a ban, and the largest
// BanAfter. Rules in DryRun are left out.
func (t *Table[L]) Bans(name string) (known, banning bool, after int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, claims := range t.claims { // a rule without a Name claims the tail of its keys
		for _, c := range claims {
			if c.Rule == name && !c.DryRun {
				known, banning, after = true, banning || c.Bans, max(after, c.BanAfter)
			}
		}
	}
	return known, banning, after
}

// Outgoing reports whether rules of this name are for calls that go out.
func (t *Table[L]) Outgoing(name string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.ContainsFunc(t.claims[name], func(c claimed[L]) bool { return c.Outgoing })
}

// AllOutgoing returns the names of the rules for calls that go out.
func (t *Table[L]) AllOutgoing() (names []string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for name, claims := range t.claims {
		if slices.ContainsFunc(claims, func(c claimed[L]) bool { return c.Outgoing }) {
			names = append(names, name)
		}
	}
	return names
}

// Leases reports whether a rule of this name takes permits of the limit's counter in advance.
func (t *Table[L]) Leases(name string, limit L) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.ContainsFunc(t.claims[name], func(c claimed[L]) bool { return c.Leases && t.sharesCounter(c.Limits[0], limit) })
}
