package tally

import (
	"sync/atomic"
	"time"

	"github.com/accesslimit/accesslimit/core/internal/histogram"
)

// DryRuns counts the calls that rules in DryRun of one name decided behind the answer.
type DryRuns struct {
	delays  histogram.Histogram
	dropped atomic.Uint64
}

// DryRuns returns the counts of dry runs.
func (t *Tally) DryRuns() *DryRuns {
	if of := t.tries.Load(); of != nil {
		return of
	}
	t.tries.CompareAndSwap(nil, new(DryRuns))
	return t.tries.Load()
}

// Decide counts a call that was decided so long after the answer. Calls with different IDs rarely wait
// for each other.
func (d *DryRuns) Decide(id uint64, delay time.Duration) { d.delays.Observe(id>>32, delay) }

// Drop counts a call that was not decided, because too many waited.
func (d *DryRuns) Drop() { d.dropped.Add(1) }

// DryRunEntry holds the DryRuns of a name.
type DryRunEntry struct {
	Rule    string
	Delays  histogram.Snapshot
	Dropped uint64
}

// DryRuns returns the counts of dry runs, in no order.
func (t *Table) DryRuns() (entries []DryRunEntry) {
	for of := range t.all {
		if d := of.tries.Load(); d != nil {
			entries = append(entries, DryRunEntry{of.label, d.delays.Snapshot(), d.dropped.Load()})
		}
	}
	return entries
}
