// Package toplist finds, over all processes, the subjects that a rule refused most, and those that
// are nearest to their limits.
//
// A process notes its observations in a sketch of bounded size for each rule. If a rule refuses
// thousands of calls a second, it notes only a sample of them, each with the number of calls that
// it stands for. Within ten seconds after the first observation, the process adds each sketch to a
// list of the current minute, in Redis or in this process. After a while without any observation,
// nothing is left in memory, and nothing runs.
//
// Losses do not add up. For a subject, a sketch loses at most 1/257 of its refusals, a list loses
// at most 1/257 of what the sketches add, and what is added to the list of all rules loses 1/513 in
// between. Together that is below 1 %. Of the 100 subjects that Read returns, the last one has at
// most 1/101 of all refusals. So every subject with more than 2 % is returned.
//
// A number is added at most once. If Redis may have added it without confirming that, it is not
// sent again. If Redis certainly has not added it, it waits in the sketch.
package toplist

import (
	"cmp"
	"context"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/accesslimit/accesslimit/core/internal/optional"
	"github.com/accesslimit/accesslimit/core/internal/panics"
)

const (
	// maxEntries is the largest number of entries that Read returns for a list.
	maxEntries = 100
	// maxRules is how many rules have lists at the same time. With subjects of 255 bytes, their
	// sketches take 30 MB of a process.
	maxRules = 200
	// all is the name of the list of all rules. No rule has an empty name.
	all = ""
	// maxAdded is about how many entries a flush adds; some hundreds more are possible. Further
	// rules wait for the next flush, so a process takes at most about 10 ms of Redis's time in 5
	// seconds.
	maxAdded = 4_000
	// flushTime bounds a flush.
	flushTime = time.Second
	// A flush begins between minWait and twice that after the first observation.
	minWait = 5 * time.Second
)

// Slots hold the lists, a slot for each minute.
type Slots interface {
	// Add adds entries to a list of the current minute, and returns how many were added, or may
	// have been.
	Add(ctx context.Context, list string, of kind, entries []Entry) (added int, err error)
	// read returns the entries of a list in the current minute and in a number of minutes before.
	read(ctx context.Context, list string, minutes int) (Minutes, error)
	// Here reports whether the slots are in this process.
	Here() bool
}

// Minutes holds the slots of some minutes.
type Minutes struct {
	Since time.Time        // when the first minute began
	Slots [kinds][][]Entry // with scores for numbers
	Odd   bool             // something was left out because this library did not write it
}

// Lists is the combined content of the slots of some minutes, the highest numbers first.
type Lists struct {
	Since         time.Time // when the first minute began
	Refused, Near []Ruled
}

// Ruled is an entry of a rule.
type Ruled struct {
	Rule string
	Entry
}

// Table holds what a process noted about all rules. Make one with New. It is safe for concurrent
// use.
type Table struct {
	slots      Slots
	background func(do func())
	log        Log
	feature    optional.Feature
	now        func() time.Duration // since the table was made

	mu     sync.Mutex
	active []*Rule     // at most maxRules
	timer  *time.Timer // of the next flush, or nil
	closed bool

	flushing sync.Mutex    // protects the fields below
	turn     int           // the rule that the next flush begins with, in active
	waiting  [kinds]sketch // for the list of all rules
}

// Log receives what an operator should know.
type Log interface {
	// TopFailed reports that entries are missing from the lists.
	TopFailed(err error)
	// TopOff reports that a right that the lists need is missing.
	TopOff(err error)
}

// New returns a table that adds to these slots, in the background.
func New(slots Slots, background func(do func()), log Log) *Table {
	start := time.Now()
	return &Table{
		slots: slots, background: background, log: log,
		now:     func() time.Duration { return time.Since(start) },
		waiting: [kinds]sketch{{of: Refused, size: 2 * watched[Refused]}, {of: Near, size: watched[Near]}},
	}
}

// Rule returns the notes about a rule. The name must not be empty.
func (t *Table) Rule(name string) *Rule { return &Rule{table: t, name: name} }

// activate reports whether there is room for a rule. If there is, the next flush includes it.
func (t *Table) activate(r *Rule) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.active) == maxRules {
		return false
	}
	t.active = append(t.active, r)
	t.schedule()
	return true
}

// deactivate leaves a rule out of later flushes.
func (t *Table) deactivate(r *Rule) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.active = slices.DeleteFunc(t.active, func(other *Rule) bool { return other == r })
}

// schedule makes sure that a flush will run. The table must be locked.
func (t *Table) schedule() {
	if t.timer == nil && !t.closed {
		t.timer = time.AfterFunc(minWait+rand.N(minWait), panics.Guard(func() { t.background(t.flushSoon) }, t.failed))
	}
}

// flushSoon flushes, and later again if something may be noted by then.
func (t *Table) flushSoon() {
	if t.isClosed() {
		return
	}
	defer func() { // also after a panic
		t.mu.Lock()
		defer t.mu.Unlock()
		if t.timer = nil; len(t.active) > 0 {
			t.schedule()
		}
	}()
	t.Flush()
}

func (t *Table) isClosed() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.closed
}

// Close flushes once more. Nothing runs afterwards.
func (t *Table) Close() {
	t.mu.Lock()
	t.closed = true
	if t.timer != nil {
		t.timer.Stop()
	}
	t.mu.Unlock()
	t.Flush()
}

// Read returns the entries of a list in the current minute and in a number of minutes before. The
// name of the list of all rules is "". If the slots are in this process, Read flushes first. It is
// not a method, because in a service that uses reflection the linker keeps all exported methods,
// and only operators read.
func Read(ctx context.Context, t *Table, list string, minutes int) (Lists, error) {
	if t.slots.Here() {
		t.Flush()
	}
	m, err := t.slots.read(ctx, list, minutes)
	if err != nil {
		return Lists{}, err
	}
	lists := Lists{Since: m.Since}
	lists.Refused = named(list, merge(m.Slots[Refused], Refused), &m.Odd)
	lists.Near = named(list, merge(m.Slots[Near], Near), &m.Odd)
	if m.Odd {
		t.failed(errOdd)
	}
	return lists, nil
}

// named returns the entries of a list with the names of their rules.
func named(list string, entries []Entry, odd *bool) (ruled []Ruled) {
	for _, e := range entries {
		rule, ok := list, true
		if list == all {
			rule, e.Subject, ok = split(e.Subject)
		}
		if *odd = *odd || !ok; ok {
			ruled = append(ruled, Ruled{rule, e})
		}
	}
	slices.SortFunc(ruled, func(a, b Ruled) int {
		return cmp.Or(cmp.Compare(b.Number, a.Number), cmp.Compare(a.Rule, b.Rule), cmp.Compare(a.Subject, b.Subject))
	})
	return ruled
}

// merge returns the entries of all slots as one list.
func merge(slots [][]Entry, of kind) []Entry {
	numbers := make(map[string]float64)
	for _, entries := range slots {
		floor := floorOf(entries, of)
		for _, e := range entries {
			if n := e.Number - floor; n > 0 {
				numbers[e.Subject] = of.join(numbers[e.Subject], n)
			}
		}
	}
	return greatest(entriesOf(numbers), maxEntries)
}
