package tally

import (
	"fmt"
	"slices"
	"strconv"
	"sync"
	"testing"
)

// Callers may choose names. Names beyond a bound are counted together, and no decision is lost.
func TestNamesAreBounded(t *testing.T) {
	table := New("others", "allowed", "memory")
	const n = 4 * MaxHandles
	var goroutines sync.WaitGroup
	for g := range 4 {
		goroutines.Go(func() {
			at := table.NewPlace()
			for i := range n / 4 {
				table.OfHandle(strconv.Itoa(g*n+i)).Count("allowed", "memory", true, &at)
			}
		})
	}
	goroutines.Wait()
	table.OfRule("late").CountUsual(true, new(Place))
	table.OfRule("never counted")
	entries := table.Snapshot()
	if len(entries) != MaxHandles+2 {
		t.Errorf("%d entries", len(entries))
	}
	if !slices.Contains(entries, Entry{"others", "allowed", "memory", n - MaxHandles, n - MaxHandles}) {
		t.Error("some of the names beyond the bound were lost")
	}
	if !slices.Contains(entries, Entry{"late", "allowed", "memory", 1, 1}) {
		t.Error("the rule was not counted under its own name")
	}
}

// Entries are sorted, so that two snapshots can be compared.
func TestSnapshotIsInOrder(t *testing.T) {
	table := New("others", "allowed", "memory")
	for i := range 40 {
		reason, source, name := fmt.Sprint("reason", i%8), fmt.Sprint("source", i%5), []string{"b", "a"}[i%2]
		table.OfRule(name).Count(reason, source, true, &Place{uint32(i)})
		table.OfHandle(name).Count(reason, source, false, &Place{uint32(i)})
	}
	entries := table.Snapshot()
	if len(entries) != 40 || !slices.IsSortedFunc(entries, compare) {
		t.Errorf("%d entries: %v", len(entries), entries)
	}
	for _, e := range entries {
		if e.Count != 2 || e.Bound != 1 {
			t.Errorf("a rule and a handle of one name are not one entry: %+v", e)
		}
	}
}

// If several goroutines count at one place, no decision is lost.
func TestOnePlaceForSeveral(t *testing.T) {
	table := New("others", "allowed", "memory")
	of := table.OfRule("rule")
	var goroutines sync.WaitGroup
	for range 4 {
		goroutines.Go(func() {
			at := Place{}
			for i := range 10_000 {
				of.CountUsual(i%4 == 0, &at)
			}
		})
	}
	goroutines.Wait()
	if want := (Entry{"rule", "allowed", "memory", 40_000, 10_000}); !slices.Contains(table.Snapshot(), want) {
		t.Errorf("counted %v, want %v", table.Snapshot(), want)
	}
}
