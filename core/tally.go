package core

import (
	"math/bits"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/accesslimit/accesslimit/core/internal/cowmap"
)

// tallies count a limiter's decisions, by name, reason and source.
//
// Each count is cut into stripes, a cache line each, because processors that write to one line wait for each other. A call
// counts in the stripe of the pooled object that it works in, and the pool keeps an object on one processor.
type tallies struct {
	mu      sync.Mutex // held to add a count
	stripes int        // of each count; a power of two
	objects atomic.Uint32
	rules   cowmap.Map[string, *tally]
	direct  cowmap.Map[string, *tally]
	rest    tally // of all names beyond
}

// The bounds: callers may choose the names of direct calls, and those of rules that are made in handlers.
const (
	maxTallies       = 4000
	maxDirectTallies = 1000
	maxStripes       = 32
)

func (t *tallies) init() {
	t.stripes = 1 << bits.Len(uint(min(4*runtime.GOMAXPROCS(0), maxStripes)-1))
	t.rest = tally{all: t, name: OtherNames}
}

// stripe is where the next object of a pool counts.
func (t *tallies) stripe() uint32 { return t.objects.Add(1) }

// ofRule is the tally of a rule's name.
func (t *tallies) ofRule(name string) *tally { return t.of(&t.rules, name, maxTallies) }

// ofDirect is the tally of a direct call's name.
func (t *tallies) ofDirect(name string) *tally { return t.of(&t.direct, name, maxDirectTallies) }

func (t *tallies) of(known *cowmap.Map[string, *tally], name string, most int) *tally {
	if of, ok := known.Get(name); ok {
		return of
	}
	if len(known.All()) >= most {
		return &t.rest
	}
	name = strings.Clone(name)
	of, kept := known.Add(name, &tally{all: t, name: name}, most)
	if !kept {
		return &t.rest
	}
	return of
}

// tally is the counts of one name, a cell for each reason and source that was seen: there are few.
type tally struct {
	all   *tallies
	name  string
	cells atomic.Pointer[[]*cell]
}

// cell is one count.
type cell struct {
	reason  Reason
	source  Source
	stripes []padded
}

// padded is a stripe of a count, alone on its cache line. Each decision is in one of the two
// numbers, so counting it is one write.
type padded struct {
	bound, other atomic.Uint64
	_            [48]byte
}

// count counts a decision, and whether it bound the call.
func (t *tally) count(reason Reason, source Source, bound bool, stripe uint32) {
	for _, c := range t.known() {
		if c.reason == reason && c.source == source {
			c.add(bound, stripe)
			return
		}
	}
	t.meet(reason, source).add(bound, stripe)
}

func (c *cell) add(bound bool, stripe uint32) {
	of := &c.stripes[int(stripe)&(len(c.stripes)-1)]
	if bound {
		of.bound.Add(1)
	} else {
		of.other.Add(1)
	}
}

// sum returns how many decisions were counted, and how many of them bound.
func (c *cell) sum() (all, bound uint64) {
	for i := range c.stripes {
		n := c.stripes[i].bound.Load()
		bound += n
		all += n + c.stripes[i].other.Load()
	}
	return all, bound
}

// meet makes the cell of a reason and a source, unless somebody else was faster.
func (t *tally) meet(reason Reason, source Source) *cell {
	t.all.mu.Lock()
	defer t.all.mu.Unlock()
	known := t.known()
	for _, c := range known {
		if c.reason == reason && c.source == source {
			return c
		}
	}
	made := &cell{reason, source, make([]padded, t.all.stripes)}
	next := append(slices.Clone(known), made)
	t.cells.Store(&next)
	return made
}

func (t *tally) known() []*cell {
	if cells := t.cells.Load(); cells != nil {
		return *cells
	}
	return nil
}
