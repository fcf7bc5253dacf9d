package engine

import (
	"math"

	"github.com/accesslimit/accesslimit/core/internal/algorithm"
)

// Rule is a rule under one name, prepared once for all its calls. A handle has one too.
type Rule struct {
	Name   string
	Soft   bool     // it lets calls that do not fit pass, marked
	Limits []*Limit // the rule's own, then the further ones
	// Required says that calls are refused while the store does not answer.
	Required bool
	// LocalShare is the fraction of the limits, up to 1, by which the process counts alone
	// meanwhile; 0: it does not.
	LocalShare float64
	// Lease is how many calls may be charged in one trip to the store; 0: each asks.
	Lease int64
	// Warn are the fractions of the limits whose reaching is reported, ascending.
	Warn []float64
}

// Limit is a limit of a Rule.
type Limit struct {
	Compiled *algorithm.Limit
	// Max is the number of permits in a window. For a bucket, Compiled.Max differs: it is the
	// burst.
	Max int64
	// KeyTail is what follows the subject in the key of its counters. It is "" for a limit that is
	// not known before the call; the key is then made from its parts.
	KeyTail string
}

// CostOf returns how many permits of the limit a call of a cost takes. Of slots, it takes at most
// one.
func (l *Limit) CostOf(cost int64) int64 {
	if cost > 1 && l.Compiled.Properties().Slots { // the cheaper test first
		return 1
	}
	return cost
}

// LargestCost returns the largest cost that fits into all of a rule's limits, with own in place of
// the first. It ignores Concurrency, where every call costs one slot.
func (r *Rule) LargestCost(own *Limit) int64 {
	a := Applied{Rule: r, Own: own}
	return a.Largest()
}

// Largest returns the largest cost that fits into all limits that apply to the call, apart from
// Concurrency, where every call costs one slot.
func (a *Applied) Largest() int64 {
	cost := int64(math.MaxInt64)
	for n := range a.count() {
		if limit := a.limit(n); !limit.Compiled.Properties().Slots {
			cost = min(cost, limit.Compiled.Most(false))
		}
	}
	return min(cost, algorithm.MaxPermits)
}

// stricter returns the smaller of two shares; 0 means none.
func stricter(a, b float64) float64 {
	if a == 0 || b == 0 {
		return max(a, b)
	}
	return min(a, b)
}
