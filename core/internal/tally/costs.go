package tally

import (
	"slices"
	"strings"
	"sync/atomic"
)

// Costs counts the costs of one name that are known afterwards.
type Costs struct {
	opened, estimated               atomic.Uint64 // bills; the permits that they were charged
	settled, settledEstimates, used atomic.Uint64 // bills; the permits that they were charged; those used in all
	unknown, debtExceeded           atomic.Uint64 // settlements; permits
}

// mostPermits is what one cost counts as at most. It is more than a counter holds, and so small that the
// sums do not overflow.
const mostPermits = 1 << 40

// Costs returns the counts of costs that are known afterwards.
func (t *Tally) Costs() *Costs {
	if of := t.costs.Load(); of != nil {
		return of
	}
	t.costs.CompareAndSwap(nil, new(Costs))
	return t.costs.Load()
}

// Open counts a bill that was charged an estimate.
func (c *Costs) Open(estimate int64) {
	c.opened.Add(1)
	c.estimated.Add(uint64(estimate))
}

// Settle counts a bill that was charged an estimate, and is settled at the permits used in all.
func (c *Costs) Settle(estimate, used int64) {
	c.settled.Add(1)
	c.settledEstimates.Add(uint64(estimate))
	c.used.Add(min(uint64(used), mostPermits))
}

// Miss counts a settlement of a bill that the store does not know.
func (c *Costs) Miss() { c.unknown.Add(1) }

// Exceed counts permits that were not charged because of the bound of a debt.
func (c *Costs) Exceed(permits uint64) { c.debtExceeded.Add(min(permits, mostPermits)) }

// CostEntry holds the Costs of a name.
type CostEntry struct {
	Rule                            string
	Opened, Estimated               uint64
	Settled, SettledEstimates, Used uint64
	Unknown, DebtExceeded           uint64
}

// Costs returns the costs that were counted, in order of names. A rule and a handle with one name
// share an entry.
func (t *Table) Costs() (entries []CostEntry) {
	for of := range t.all {
		if costs := of.costs.Load(); costs != nil {
			entries = append(entries, costs.entry(of.label))
		}
	}
	slices.SortStableFunc(entries, func(a, b CostEntry) int { return strings.Compare(a.Rule, b.Rule) })
	merged := entries[:0]
	for _, e := range entries {
		if last := len(merged) - 1; last >= 0 && merged[last].Rule == e.Rule {
			merged[last].add(&e)
		} else {
			merged = append(merged, e)
		}
	}
	return merged
}

func (c *Costs) entry(label string) CostEntry {
	return CostEntry{
		label, c.opened.Load(), c.estimated.Load(), c.settled.Load(), c.settledEstimates.Load(), c.used.Load(), c.unknown.Load(), c.debtExceeded.Load(),
	}
}

func (e *CostEntry) add(other *CostEntry) {
	e.Opened += other.Opened
	e.Estimated += other.Estimated
	e.Settled += other.Settled
	e.SettledEstimates += other.SettledEstimates
	e.Used += other.Used
	e.Unknown += other.Unknown
	e.DebtExceeded += other.DebtExceeded
}
