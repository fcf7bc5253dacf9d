package tally

import (
	"slices"
	"strings"
	"sync/atomic"
	"time"
)

// DryRuns counts the calls that rules in DryRun of one name decided behind the answer.
type DryRuns struct {
	decided, dropped atomic.Uint64
	delay            atomic.Int64
}

// DryRuns returns the counts of dry runs.
func (t *Tally) DryRuns() *DryRuns {
	if of := t.tries.Load(); of != nil {
		return of
	}
	t.tries.CompareAndSwap(nil, new(DryRuns))
	return t.tries.Load()
}

// Decide counts a call that was decided so long after the answer.
func (d *DryRuns) Decide(delay time.Duration) {
	d.decided.Add(1)
	d.delay.Add(int64(delay))
}

// Drop counts a call that was not decided, because too many waited.
func (d *DryRuns) Drop() { d.dropped.Add(1) }

// DryRunEntry holds the DryRuns of a name.
type DryRunEntry struct {
	Rule             string
	Decided, Dropped uint64
	Delay            time.Duration
}

// DryRuns returns the counts of dry runs, in order of names.
func (t *Table) DryRuns() (entries []DryRunEntry) {
	for of := range t.all {
		if d := of.tries.Load(); d != nil {
			entries = append(entries, DryRunEntry{of.label, d.decided.Load(), d.dropped.Load(), time.Duration(d.delay.Load())})
		}
	}
	slices.SortFunc(entries, func(a, b DryRunEntry) int { return strings.Compare(a.Rule, b.Rule) })
	merged := entries[:0]
	for _, e := range entries { // several names may have one label
		if last := len(merged) - 1; last >= 0 && merged[last].Rule == e.Rule {
			merged[last].Decided += e.Decided
			merged[last].Dropped += e.Dropped
			merged[last].Delay += e.Delay
		} else {
			merged = append(merged, e)
		}
	}
	return merged
}
