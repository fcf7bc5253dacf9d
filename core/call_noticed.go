package core

import (
	"slices"

	"github.com/accesslimit/accesslimit/core/internal/engine"
	"github.com/accesslimit/accesslimit/core/internal/thresholds"
)

// warn reports the thresholds that the charges of a call have reached. It is called for calls that
// passed.
func (c *call) warn() {
	for i := range c.Len() {
		warnings := c.warnings(i)
		if len(warnings) == 0 {
			continue
		}
		a, limit := c.Limit(i), c.limitAt(i)
		c.limiter.thresholds.Charged(&thresholds.Charge{
			Rule: a.Rule.Name, DryRun: a.Rule.Mode == engine.DryRun, Subject: a.Subject, Warn: warnings, Max: limit.Max,
		}, func() Limit { return *limit }, c.Counter(i), c.Verdict(i))
	}
}

// warnings returns the fractions of the limit at i that are reported: those of all rules with its
// counter. A ban has none.
func (c *call) warnings(i int) []float64 {
	a := c.Limit(i)
	if a.IsBan {
		return nil
	}
	all := c.rules[a.At].rule.Warn
	for _, other := range a.Merged {
		all = bothWarn(all, c.rules[other.At].rule.Warn)
	}
	return all
}

// bothWarn merges two ascending lists of fractions into one. The result must not be changed, because
// it may be one of the two.
func bothWarn(a, b []float64) []float64 {
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
