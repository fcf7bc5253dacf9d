package engine

import (
	"slices"

	"github.com/accesslimit/accesslimit/core/internal/algorithm"
)

// Decided is the decision of a rule, made by the limit that represents it.
type Decided struct {
	// Usual reports whether the store allowed the call. Outcome is Allowed then.
	Usual   bool
	Outcome Outcome
	// Bound reports whether the call was answered with this decision.
	Bound bool
	// Near reports whether the call left few permits of a limit of the rule. If so, MostUsed says
	// how much of it is in use.
	Near bool
	// Refused reports whether a limit, a ban or a block refused the call, or would have done so if
	// the rule were not soft.
	Refused bool
}

// Notice passes the decision of each rule, and the charges that may reach a fraction of a limit, to
// the observer. binding is the index of the limit with which the call was answered, or -1. That
// limit represents its rule, which comes first.
func (c *Call) Notice(binding int) {
	if c.warns && c.passed {
		c.noticeCharges()
	}
	if binding >= 0 {
		c.notice(binding, true)
	}
	for i := range c.limits {
		if i == binding || binding >= 0 && c.SameRule(i, binding) {
			continue
		}
		if at := c.Represents(i); at >= 0 {
			c.notice(at, false)
		}
	}
}

// notice passes the decision of a rule to the observer.
func (c *Call) notice(i int, bound bool) {
	v := &c.op.Verdicts[i]
	d := Decided{Bound: bound, Near: c.passed && c.anyNear && c.near(i)}
	if v.From == algorithm.FromStore && v.RetryAfter == 0 && v.Err == nil {
		d.Usual = true
	} else {
		d.Outcome, d.Refused = c.Outcome(i), v.RetryAfter > 0 && v.Err == nil
	}
	c.observer.Decided(i, d)
}

func (c *Call) noticeCharges() {
	for i := range c.limits {
		if warn := c.Warn(i); len(warn) > 0 {
			c.observer.Charged(i, warn)
		}
	}
}

// Warn returns the fractions of the limit at i at which its use is reported. The list must not be changed.
func (c *Call) Warn(i int) (warn []float64) {
	a := &c.limits[i]
	if a.IsMark {
		return nil
	}
	warn = a.Rule.Warn
	for _, other := range a.Merged {
		warn = merged(warn, other.Rule.Warn)
	}
	return warn
}

// merged merges two ascending lists into one. The result must not be changed, because it may be one of
// the two.
func merged(a, b []float64) []float64 {
	switch {
	case len(b) == 0 || slices.Equal(a, b):
		return a
	case len(a) == 0:
		return b
	}
	both := slices.Concat(a, b)
	slices.Sort(both)
	return slices.Compact(both)
}

// near reports whether a call that passed left few permits of a limit of the rule that the limit
// at i represents. The rule must have allowed it.
func (c *Call) near(i int) bool {
	if c.op.Verdicts[i].RetryAfter > 0 { // a soft rule lets the call pass even so
		return false
	}
	for j := range c.limits {
		if IsNear(&c.op.Counters[j], &c.op.Verdicts[j]) && c.SameRule(i, j) {
			return true
		}
	}
	return false
}

// IsNear reports whether at least 80 % of a limit is in use after a charge by the store. It is
// false for a local count, because that covers only a share of the limit.
func IsNear(c *algorithm.Counter, v *algorithm.Verdict) bool {
	return isNearlyUsedUp(c, v) && v.RetryAfter == 0 && v.Err == nil &&
		(v.From == algorithm.FromStore || v.From == algorithm.FromLease)
}

func isNearlyUsedUp(c *algorithm.Counter, v *algorithm.Verdict) bool {
	return 5*v.Remaining <= c.Limit.Max
}

// MostUsed returns the largest share in use, from 0 to 1, among the nearly used-up limits of the
// rule that the limit at i represents.
func (c *Call) MostUsed(i int) (most float64) {
	for j := range c.limits {
		if (i == j || c.SameRule(i, j)) && IsNear(&c.op.Counters[j], &c.op.Verdicts[j]) {
			most = max(most, ShareInUse(&c.op.Counters[j], &c.op.Verdicts[j]))
		}
	}
	return most
}

// ShareInUse returns how much of a limit is in use, from 0 to 1.
func ShareInUse(c *algorithm.Counter, v *algorithm.Verdict) float64 {
	return float64(c.Limit.Max-v.Remaining) / float64(c.Limit.Max)
}
