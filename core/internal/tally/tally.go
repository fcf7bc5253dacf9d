// Package tally counts decisions by name, reason and source, without making processors wait for
// each other.
package tally

import (
	"cmp"
	"math/bits"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/accesslimit/accesslimit/core/internal/cowmap"
	"github.com/accesslimit/accesslimit/core/internal/toplist"
)

// MaxHandles bounds the names of handles, and maxRules the names of rules. Callers may choose names
// if handlers make handles and rules.
const (
	MaxHandles = 1000
	maxRules   = 4000
	maxStripes = 32
)

// Table holds the counts of a limiter. Make one with New. It is safe for concurrent use.
//
// Each count is divided into stripes, each on its own cache line, because processors that write to
// one line wait for each other. A call counts in the [Place] of the pooled object that it uses, and
// the pool keeps an object on one processor. Nothing is lost when the garbage collector empties the
// pool.
type Table struct {
	mu      sync.Mutex // held to add a count
	naming  sync.Mutex // held to add a rule's name, or to remove it
	stripes int        // of each count; a power of two
	objects atomic.Uint32
	rules   cowmap.Map[string, *Tally]
	handles cowmap.Map[string, *Tally]
	others  *Tally // of all names that are not kept
	// The reason and the source of most decisions.
	usualReason, usualSource string
	tops                     *toplist.Table
}

// OtherNames is the name under which all names that are not kept are counted.
const OtherNames = "(other names)"

// New returns an empty table. Decisions with the usual reason and source can be counted by
// [Tally.CountUsual]. tops is the table of [Tally.Top].
func New(usualReason, usualSource string, tops *toplist.Table) *Table {
	t := &Table{
		stripes:     1 << bits.Len(uint(min(4*runtime.GOMAXPROCS(0), maxStripes)-1)),
		usualReason: usualReason, usualSource: usualSource, tops: tops,
	}
	t.others = t.newTally(OtherNames)
	return t
}

func (t *Table) newTally(name string) *Tally {
	of := &Tally{table: t, name: name, label: Label(name), usual: t.newCell(t.usualReason, t.usualSource)}
	of.Top = t.tops.Rule(of.label)
	of.cells.Store(&[]*cell{of.usual})
	return of
}

func (t *Table) newCell(reason, source string) *cell {
	return &cell{reason, source, make([]stripe, t.stripes)}
}

// Place is the stripe in which a pooled object counts. If another object counts there at the same
// time, the Place moves to the next stripe. When two objects shared a stripe, a leased call spent
// half of its time waiting to count.
type Place struct{ stripe uint32 }

// NewPlace returns the place of the next object of a pool.
func (t *Table) NewPlace() Place { return Place{t.objects.Add(1)} }

// OfRule returns the tally of a rule's name. It is kept forever.
func (t *Table) OfRule(name string) *Tally {
	if of, ok := t.rules.Get(name); ok && of.kept.Load() {
		return of
	}
	t.naming.Lock()
	defer t.naming.Unlock()
	of := t.of(&t.rules, name, maxRules)
	of.kept.Store(true)
	return of
}

// Others returns the tally of names that are not kept.
func (t *Table) Others() *Tally { return t.others }

// Hold returns the tally of a rule's name. It is kept until Release.
func (t *Table) Hold(name string) *Tally {
	t.naming.Lock()
	defer t.naming.Unlock()
	of := t.of(&t.rules, name, maxRules)
	of.holders++
	return of
}

// Release ends one Hold. The tally is removed unless something else needs it.
func (t *Table) Release(of *Tally) {
	t.naming.Lock()
	defer t.naming.Unlock()
	if of.holders--; of.holders == 0 && !of.kept.Load() && of != t.others {
		t.rules.Remove(of.name)
	}
}

// OfHandle returns the tally of a handle's name.
func (t *Table) OfHandle(name string) *Tally { return t.of(&t.handles, name, MaxHandles) }

func (t *Table) of(names *cowmap.Map[string, *Tally], name string, limit int) *Tally {
	if of, ok := names.Get(name); ok {
		return of
	}
	if len(names.All()) >= limit {
		return t.others
	}
	name = strings.Clone(name)
	of, ok := names.Add(name, t.newTally(name), limit)
	if !ok {
		return t.others
	}
	return of
}

// Tally holds the counts of one name: a cell for each of the few pairs of a reason and a source.
type Tally struct {
	// Top notes which subjects are refused.
	Top *toplist.Rule

	table *Table
	name  string
	label string // the name in snapshots
	usual *cell  // the cell of the usual reason and source; also the first of cells
	cells atomic.Pointer[[]*cell]
	costs atomic.Pointer[Costs]   // nil until a cost is known afterwards
	tries atomic.Pointer[DryRuns] // nil until there is a dry run

	kept    atomic.Bool // the name is never removed
	holders int         // Table.naming protects it
}

type cell struct {
	reason, source string
	stripes        []stripe
}

// Traits are further properties by which a decision is counted.
type Traits uint8

const (
	// Bound means that the call was answered with the decision.
	Bound Traits = 1 << iota
	// Near means that few permits are left.
	Near
	// Refused means that another rule refused the call, on which a rule in DryRun decided.
	Refused

	allTraits = Bound | Near | Refused
)

// stripe is a part of a count, alone on its cache line. It has a number for each set of traits, and
// each decision is in one of them, so counting it is one write.
type stripe struct {
	numbers [allTraits + 1]atomic.Uint64
}

// Count counts a decision with its traits.
func (t *Tally) Count(reason, source string, traits Traits, at *Place) {
	c := t.find(reason, source)
	if c == nil {
		c = t.addCell(reason, source)
	}
	c.count(traits, at)
}

// CountUsual is Count for the usual reason and source. It takes a seventh of Count's instructions.
func (t *Tally) CountUsual(traits Traits, at *Place) { t.usual.count(traits, at) }

func (c *cell) count(traits Traits, at *Place) {
	number := c.number(traits, at)
	if n := number.Load(); number.CompareAndSwap(n, n+1) {
		return
	}
	at.stripe++
	c.number(traits, at).Add(1)
}

func (c *cell) number(traits Traits, at *Place) *atomic.Uint64 {
	return &c.stripes[int(at.stripe)&(len(c.stripes)-1)].numbers[traits&allTraits]
}

// find returns the cell of a reason and a source, or nil.
func (t *Tally) find(reason, source string) *cell {
	for _, c := range *t.cells.Load() {
		if c.reason == reason && c.source == source {
			return c
		}
	}
	return nil
}

// addCell returns the cell of a reason and a source, adding it unless another goroutine was faster.
func (t *Tally) addCell(reason, source string) *cell {
	t.table.mu.Lock()
	defer t.table.mu.Unlock()
	if c := t.find(reason, source); c != nil {
		return c
	}
	added := t.table.newCell(reason, source)
	cells := append(slices.Clone(*t.cells.Load()), added)
	t.cells.Store(&cells)
	return added
}

// Entry holds how often a name decided with one reason and source, and how many of these decisions
// were Bound, Near and Refused.
type Entry struct {
	Name, Reason, Source        string
	Count, Bound, Near, Refused uint64
}

// Snapshot returns all that was counted, in order of name, reason and source. A rule and a handle
// with one name share an entry.
func (t *Table) Snapshot() (entries []Entry) {
	for of := range t.all {
		entries = of.appendTo(entries)
	}
	slices.SortFunc(entries, compare)
	merged := entries[:0]
	for _, e := range entries {
		if last := len(merged) - 1; last >= 0 && compare(merged[last], e) == 0 {
			merged[last].Count += e.Count
			merged[last].Bound += e.Bound
			merged[last].Near += e.Near
			merged[last].Refused += e.Refused
		} else {
			merged = append(merged, e)
		}
	}
	return merged
}

// all yields the tallies of all names.
func (t *Table) all(yield func(*Tally) bool) {
	for _, names := range [...]*cowmap.Map[string, *Tally]{&t.rules, &t.handles} {
		for _, of := range names.All() {
			if !yield(of) {
				return
			}
		}
	}
	yield(t.others)
}

func compare(a, b Entry) int {
	return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.Reason, b.Reason), cmp.Compare(a.Source, b.Source))
}

func (t *Tally) appendTo(entries []Entry) []Entry {
	for _, c := range *t.cells.Load() {
		e := Entry{Name: t.label, Reason: c.reason, Source: c.source}
		for i := range c.stripes {
			c.stripes[i].addTo(&e)
		}
		if e.Count > 0 {
			entries = append(entries, e)
		}
	}
	return entries
}

func (s *stripe) addTo(e *Entry) {
	for traits := range s.numbers {
		n := s.numbers[traits].Load()
		e.Count += n
		if Traits(traits)&Bound != 0 {
			e.Bound += n
		}
		if Traits(traits)&Near != 0 {
			e.Near += n
		}
		if Traits(traits)&Refused != 0 {
			e.Refused += n
		}
	}
}
