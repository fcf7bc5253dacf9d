package rulenames

import "slices"

// Questions that operators and the process itself ask about the names of rules.

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
