package accesslog

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"
)

// lateness is how much later than others a call may be written and still be put in order, in
// microseconds. A proxy writes a call when it ends.
const lateness = 60 * second

const second = int64(1_000_000)

// Step is a jump of the log's clock back by more than a minute. Later calls are moved, so that they
// continue where the log was.
type Step struct {
	At   int64 // where the log was, in microseconds since the epoch
	Back int64 // by how much the clock went back, in microseconds
}

// maxSteps is how often the clock of a log may go back: when summer time ends, and when it is
// corrected. A log in which it goes back more often is not in order of time.
const maxSteps = 3

// ErrOrder is the error of a log that is not in order of time.
var ErrOrder = errors.New("is not in order of time")

// ordered yields the calls of a log in the order in which they began, and those that began at once in
// the order of the log. It holds a minute of calls.
type ordered struct {
	log  *Log
	ends error // why there are no more lines, or nil
	read Call  // the call of the last line

	// A call is in the slot of the second in which it began, modulo their number. The slots from the
	// second `from` on are held; the calls in out are to be yielded first.
	slots [slotCount][]Call
	from  int64
	out   []Call
	given int // how many of out were yielded

	newest  int64 // of the times at which lines were written, moved by shift
	shift   int64 // what is added to the log's times since its clock went back
	suspect Call  // a call that was written long before newest, or the zero Call
	steps   []Step

	lax         bool // read on if the log is not in order of time
	calls       int
	behind      int   // calls that were written over a minute before newest
	first, last int64 // the log's own times of the first and the last line
}

// slotCount is more than the seconds of lateness, so that a slot that is being filled is not held twice.
const slotCount = 64

func newOrdered(l *Log, lax bool) *ordered { return &ordered{log: l, lax: lax} }

// peek returns the next call, which is valid until the next call of take, or nil at the end.
func (o *ordered) peek() *Call {
	for o.given == len(o.out) {
		if !o.fill() {
			return nil
		}
	}
	return &o.out[o.given]
}

func (o *ordered) take() { o.given++ }

// fill reads on until there are calls to yield. It reports false at the end of the log.
func (o *ordered) fill() bool {
	o.out, o.given = o.out[:0], 0
	for len(o.out) == 0 && o.ends == nil {
		if o.ends = o.log.next(&o.read); o.ends == nil {
			o.place(o.read)
			o.read.named = nil // it belongs to the call that was placed
		}
	}
	if o.ends != nil && len(o.out) == 0 {
		o.settle()
		o.release(o.newest/second + 1)
	}
	return len(o.out) > 0
}

// place puts a call that was just read into its slot, or holds it back while it is not clear whether the
// clock has gone back.
func (o *ordered) place(c Call) {
	if o.newest == 0 {
		o.newest = c.written
		o.from = c.written/second - lateness/second
		o.first = c.written
	}
	o.last = c.written
	o.calls++
	if o.shift > 0 && c.written >= o.newest {
		o.shift = 0 // the log's own time has caught up
	}
	if behind := c.written+o.shift < o.newest-lateness; behind && o.suspect.URI == "" {
		o.suspect = c
		return
	} else if behind && near(c.written, o.suspect.written) {
		o.stepBack(o.suspect.written)
	}
	o.settle()
	o.insert(c)
}

func near(a, b int64) bool { return max(a-b, b-a) <= lateness }

// stepBack follows a clock that went back: two lines in a row have such a time.
func (o *ordered) stepBack(written int64) {
	o.steps = append(o.steps, Step{At: o.newest, Back: o.newest - o.shift - written})
	o.shift = o.newest - written
	if len(o.steps) > maxSteps && !o.lax {
		o.ends = o.disorder()
	}
}

// settle inserts the call that was held back.
func (o *ordered) settle() {
	if c := o.suspect; c.URI != "" {
		o.suspect = Call{}
		o.insert(c)
	}
}

// insert puts a call into the slot of its second, and releases what can no longer be preceded by a call
// that comes in time.
func (o *ordered) insert(c Call) {
	c.written += o.shift
	c.Began += o.shift
	if c.written < o.newest-lateness {
		o.behind++
	}
	if c.written > o.newest {
		o.newest = c.written
		o.release(c.written/second - lateness/second)
	}
	if at := c.Began / second; at < o.from {
		c.Took = max(0, c.Took-(o.from*second-c.Began))
		c.Began, c.Late = o.from*second, true
	} else if c.Began > o.newest {
		c.Began = o.newest
	}
	slot := &o.slots[c.Began/second%slotCount]
	*slot = append(*slot, c)
}

// release moves the calls that began before a second to those that are yielded.
func (o *ordered) release(before int64) {
	for range min(before-o.from, slotCount) {
		slot := &o.slots[o.from%slotCount]
		slices.SortStableFunc(*slot, func(a, b Call) int { return cmp.Compare(a.Began, b.Began) })
		o.out = append(o.out, *slot...)
		clear(*slot)
		*slot = (*slot)[:0]
		o.from++
	}
	o.from = max(o.from, before)
}

// err returns why the log ended, or nil.
func (o *ordered) err() error {
	if o.ends == io.EOF {
		return o.disorder()
	}
	return o.ends
}

// disorder returns an error that matches ErrOrder, or nil for a log in order of time. A log that
// begins with its newest call may be too short for many steps, but its last call is before its
// first.
func (o *ordered) disorder() error {
	switch {
	case len(o.steps) > maxSteps:
		return fmt.Errorf("%w: its time goes back by more than a minute, again and again", ErrOrder)
	case o.behind*100 > o.calls:
		return fmt.Errorf("%w: %d of its %d calls are over a minute behind others", ErrOrder, o.behind, o.calls)
	case o.last < o.first-lateness:
		return fmt.Errorf("%w: its last call is before its first one", ErrOrder)
	}
	return nil
}
