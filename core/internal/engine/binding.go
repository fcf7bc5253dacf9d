package engine

import "github.com/accesslimit/accesslimit/core/internal/algorithm"

// Binding returns the index of the limit that binds the call most, or -1 if there is none. A
// soft limit binds only if it is exceeded and no hard limit refuses, or if there is no hard limit.
func (c *Call) Binding() (at int) {
	at = -1
	for i := range c.limits {
		if !c.limits[i].Shown() || c.Unasked(i) {
			continue
		}
		if at < 0 || c.BindsMore(i, at) {
			at = i
		}
	}
	if c.hasSoft && (at < 0 || !c.op.Counters[at].Refuses(&c.op.Verdicts[at])) {
		return c.softOr(at)
	}
	return at
}

// softOr returns the index of the soft limit that binds the call most, if that is exceeded or at is
// -1, and otherwise at.
func (c *Call) softOr(at int) int {
	if soft := c.bindingSoft(); at < 0 || c.SoftExceeded(soft) {
		return soft
	}
	return at
}

// bindingSoft returns the index of the soft limit that binds the call most, or -1 if there is none.
func (c *Call) bindingSoft() (at int) {
	at = -1
	for i := range c.limits {
		if c.limits[i].Rule.Soft && !c.Unasked(i) && (at < 0 || c.BindsMore(i, at)) {
			at = i
		}
	}
	return at
}

// SoftExceeded reports whether the limit at i exists, is soft, and is exceeded by the call.
func (c *Call) SoftExceeded(i int) bool {
	return c.hasSoft && i >= 0 && c.limits[i].Rule.Soft && c.op.Verdicts[i].RetryAfter > 0
}

// Unasked reports whether the limit at i was not asked, because the remembered refusal of
// another limit still holds. Such a limit is left out of headers, decisions and counts.
func (c *Call) Unasked(i int) bool { return c.op.Verdicts[i].From == algorithm.FromNobody }

// BindsMore reports whether the limit at i binds the call more than the one at j: a refusal more
// than an allowance, a longer wait more than a shorter one, a verdict more than a failure, fewer
// permits left more than many.
func (c *Call) BindsMore(i, j int) bool {
	a, b := &c.op.Verdicts[i], &c.op.Verdicts[j]
	return BindsMore(a, b, c.op.Counters[i].Refuses(a), c.op.Counters[j].Refuses(b))
}

// BindsMore reports whether verdict a binds a call more than b. refused and other report whether a
// and b refuse the call.
func BindsMore(a, b *algorithm.Verdict, refused, other bool) bool {
	switch {
	case refused != other:
		return refused
	case a.RetryAfter != b.RetryAfter:
		return a.RetryAfter > b.RetryAfter
	case (a.Err == nil) != (b.Err == nil):
		return a.Err == nil
	case a.Remaining != b.Remaining:
		return a.Remaining < b.Remaining
	default:
		return a.ResetAfter > b.ResetAfter
	}
}

// Represents returns the index of the limit that represents the rule whose first limit is at i.
// That is the limit that binds the call most. It returns -1 if i is not the rule's first limit, or if
// the store answered for none of its limits. Rules with one name count as one, because callers and
// counts know them by name.
func (c *Call) Represents(i int) (at int) {
	for j := range i {
		if c.SameRule(i, j) {
			return -1
		}
	}
	at = -1
	if !c.Unasked(i) {
		at = i
	}
	for j := i + 1; j < len(c.limits); j++ {
		switch {
		case !c.SameRule(i, j) || c.Unasked(j):
		case at < 0 || c.BindsMore(j, at):
			at = j
		}
	}
	return at
}

// SameRule reports whether the limits at i and j belong to one rule, or to rules with one name.
func (c *Call) SameRule(i, j int) bool {
	a, b := c.limits[i].Rule, c.limits[j].Rule
	return a == b || a.Name == b.Name && a.Soft == b.Soft
}
