package tally

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"unicode/utf8"
)

// Callers may choose names. Names beyond a bound are counted together, and no decision is lost.
func TestNamesAreBounded(t *testing.T) {
	table := New("allowed", "memory", nil)
	const n = 4 * MaxHandles
	var goroutines sync.WaitGroup
	for g := range 4 {
		goroutines.Go(func() {
			at := table.NewPlace()
			for i := range n / 4 {
				table.OfHandle(strconv.Itoa(g*n+i)).Count("allowed", "memory", Bound, &at)
			}
		})
	}
	goroutines.Wait()
	table.OfRule("late").CountUsual(Bound, new(Place))
	table.OfRule("never counted")
	entries := table.Snapshot()
	if len(entries) != MaxHandles+2 {
		t.Errorf("%d entries", len(entries))
	}
	if !slices.Contains(entries, Entry{OtherNames, "allowed", "memory", n - MaxHandles, n - MaxHandles, 0, 0}) {
		t.Error("some of the names beyond the bound were lost")
	}
	if !slices.Contains(entries, Entry{"late", "allowed", "memory", 1, 1, 0, 0}) {
		t.Error("the rule was not counted under its own name")
	}
}

// Metrics servers reject a name that is no UTF-8, and a scrape with two equal names.
func TestNamesAreLabels(t *testing.T) {
	table, at := New("allowed", "memory", nil), Place{}
	long := strings.Repeat("ü", 150)
	for _, name := range []string{"plain", "a\xff", "a\xfe", long + "1", long + "2"} {
		table.OfRule(name).CountUsual(Bound, &at)
	}
	entries := table.Snapshot()
	if len(entries) != 4 || entries[0] != (Entry{"a\uFFFD", "allowed", "memory", 2, 2, 0, 0}) {
		t.Errorf("the entries are %+v", entries)
	}
	for _, e := range entries {
		if !utf8.ValidString(e.Name) || len(e.Name) > maxLabel {
			t.Errorf("%q is no label", e.Name)
		}
	}
}

// Entries are sorted, so that two snapshots can be compared.
func TestSnapshotIsInOrder(t *testing.T) {
	table := New("allowed", "memory", nil)
	for i := range 40 {
		reason, source, name := fmt.Sprint("reason", i%8), fmt.Sprint("source", i%5), []string{"b", "a"}[i%2]
		table.OfRule(name).Count(reason, source, Bound, &Place{uint32(i)})
		table.OfHandle(name).Count(reason, source, Near, &Place{uint32(i)})
	}
	entries := table.Snapshot()
	if len(entries) != 40 || !slices.IsSortedFunc(entries, compare) {
		t.Errorf("%d entries: %v", len(entries), entries)
	}
	for _, e := range entries {
		if e.Count != 2 || e.Bound != 1 || e.Near != 1 {
			t.Errorf("a rule and a handle of one name are not one entry: %+v", e)
		}
	}
}

// If several goroutines count at one place, no decision is lost.
func TestOnePlaceForSeveral(t *testing.T) {
	table := New("allowed", "memory", nil)
	of := table.OfRule("rule")
	var goroutines sync.WaitGroup
	for range 4 {
		goroutines.Go(func() {
			at := Place{}
			for i := range 10_000 {
				of.CountUsual(Traits(i%4), &at)
			}
		})
	}
	goroutines.Wait()
	if want := (Entry{"rule", "allowed", "memory", 40_000, 20_000, 20_000, 0}); !slices.Contains(table.Snapshot(), want) {
		t.Errorf("counted %v, want %v", table.Snapshot(), want)
	}
}

// A name that sets of rules held is removed with the last Release, unless a rule in Go has it too.
// The counts until then are forgotten.
func TestNamesAreReleased(t *testing.T) {
	table := New("allowed", "memory", nil)
	count := func(of *Tally) { of.CountUsual(Bound, new(Place)) }
	first, second := table.Hold("set"), table.Hold("set")
	if first != second {
		t.Error("one name has two tallies")
	}
	count(first)
	count(table.OfRule("rule"))
	held := table.Hold("rule")
	for range 2 * maxRules {
		of := table.Hold("passing")
		count(of)
		table.Release(of)
	}
	table.Release(first)
	table.Release(held)
	names := func() (names []string) {
		for _, e := range table.Snapshot() {
			names = append(names, e.Name)
		}
		return names
	}
	if got := names(); !slices.Equal(got, []string{"rule", "set"}) {
		t.Errorf("counted %v", got)
	}
	table.Release(second)
	if got := names(); !slices.Equal(got, []string{"rule"}) {
		t.Errorf("counted %v", got)
	}
}
