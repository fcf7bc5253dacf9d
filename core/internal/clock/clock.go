// Package clock returns the time of this process, also after the machine was suspended or its clock
// was set.
//
// The monotonic clock alone is not enough: on Linux it stands still during a suspension, and it
// does not correct a wall clock that was wrong at the start. Reading the wall
// clock for every decision takes a third longer, and it may step at any time. So the time is read
// from the monotonic clock, which is compared with the wall clock from time to time.
package clock

import (
	"sync"
	"sync/atomic"
	"time"
)

const (
	// compareEvery is the longest time, by the monotonic clock, for which a jump of the wall clock
	// goes unnoticed.
	compareEvery = 10 * time.Millisecond
	// maxAhead is how far the wall clock may be ahead before this clock follows it. Following it
	// forward costs callers nothing.
	maxAhead = 10 * time.Millisecond
	// maxBehind is how far the wall clock may be behind before this clock follows it. A step back
	// makes callers wait, because everything used before counts as used at the new time. So this
	// clock does not step back if the wall clock is only slewed or was read at a bad moment.
	maxBehind = time.Second
	// maxSpread is how far two comparisons in a row may differ to be trusted: a goroutine may lose
	// its processor between the two readings of one comparison.
	maxSpread = time.Millisecond
)

// Clock has a time that never steps, Awake, and knows by how much the wall clock is ahead of it,
// Ahead. Their sum is the time since the epoch. The sum steps back if the wall clock does, and
// jumps ahead with it, for example after a suspension. [Clock.Start] must be called first; then a
// Clock is safe for concurrent use.
type Clock struct {
	// Read reads the wall clock, in nanoseconds since the epoch, and the monotonic one, in
	// nanoseconds since Start. Start sets it; a test may replace it before the clock is used.
	Read func() (wall, monotonic int64)

	start  time.Time
	begin  int64        // start, in nanoseconds since the epoch
	ahead  atomic.Int64 // see Ahead
	jumps  atomic.Int64 // see Jumps
	jumped atomic.Int64 // the sum of the jumps ahead, in microseconds
	next   atomic.Int64 // when the clocks are compared again, by the monotonic one
	mu     sync.Mutex   // held while they are compared
}

// Start sets the clock to the wall clock.
func (c *Clock) Start() {
	c.start = time.Now()
	c.begin = c.start.UnixNano()
	c.Read = func() (wall, monotonic int64) {
		now := time.Now()
		return now.UnixNano(), int64(now.Sub(c.start))
	}
}

// Awake returns a time in nanoseconds that never steps back, and stands still while the machine is
// suspended. It begins with the time since the epoch at Start.
func (c *Clock) Awake() int64 {
	monotonic := int64(time.Since(c.start))
	if next := c.next.Load(); monotonic >= next && c.next.CompareAndSwap(next, monotonic+int64(compareEvery)) {
		c.compare()
	}
	return c.begin + monotonic
}

// Ahead returns by how many microseconds the wall clock is ahead of Awake. It is negative if the
// wall clock was set back.
func (c *Clock) Ahead() int64 { return c.ahead.Load() }

// Passed returns a time in microseconds that never steps back, and jumps ahead with the wall clock, for
// example after a suspension.
func (c *Clock) Passed() int64 { return c.Awake()/1000 + c.jumped.Load() }

// Jumps returns how often Ahead has changed.
func (c *Clock) Jumps() int64 { return c.jumps.Load() }

// compare follows the wall clock if it has moved away from this clock.
func (c *Clock) compare() {
	if !c.mu.TryLock() {
		return
	}
	defer c.mu.Unlock()
	last := c.off()
	for range 3 {
		if last <= int64(maxAhead) && last >= -int64(maxBehind) {
			return
		}
		off := c.off()
		if difference := off - last; max(difference, -difference) <= int64(maxSpread) {
			c.follow(off)
			return
		}
		last = off
	}
}

// off returns by how much the wall clock is ahead of this one.
func (c *Clock) off() int64 {
	wall, monotonic := c.Read()
	return wall - (c.begin + monotonic + c.ahead.Load()*1000)
}

func (c *Clock) follow(off int64) {
	c.ahead.Add(off / 1000)
	c.jumped.Add(max(0, off/1000))
	c.jumps.Add(1)
}
