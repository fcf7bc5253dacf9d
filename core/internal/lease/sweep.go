package lease

import (
	"math"
	"time"

	"github.com/accesslimit/accesslimit/core/internal/panics"
)

const (
	// sweepPause is the shortest time between two sweeps.
	sweepPause = int64(5 * time.Millisecond)
	// forgetAfter is for how long a lease that nobody uses is remembered.
	forgetAfter = int64(time.Second)
)

// wake makes a sweep run soon after the given time. Without leases there is no timer.
func (l *Leases) wake(at int64) {
	now := l.clock.Now()
	at = max(at, now+sweepPause)
	t := &l.tasks
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.stopped || at >= t.next {
		return
	}
	t.next = at
	if t.timer == nil {
		t.timer = time.AfterFunc(time.Duration(at-now), panics.Guard(l.sweep, l.source.Panicked))
		return
	}
	t.timer.Reset(time.Duration(at - now))
}

// sweep ends the leases that have expired, forgets those that nobody uses, and gives back.
func (l *Leases) sweep() {
	if !l.tasks.begin(nil) {
		return
	}
	defer l.finishTask()
	l.tasks.mu.Lock()
	l.tasks.next = math.MaxInt64
	l.tasks.mu.Unlock()
	now, next := l.clock.Now(), int64(math.MaxInt64)
	for set := range l.table.Sets {
		for e := range set.Entries() {
			at, forget := l.check(e, now)
			if forget {
				set.Remove(e)
			}
			next = min(next, at)
		}
	}
	if next < math.MaxInt64 {
		l.wake(next)
	}
	l.giveBacks.flush()
}

// check ends a lease that has expired. It returns when to check the lease again, or reports that
// the lease can be forgotten.
func (l *Leases) check(e *lease, now int64) (next int64, forget bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if b := e.batch.Load(); b != nil {
		if now < b.expires {
			return b.expires, false
		}
		l.end(e)
	}
	switch {
	case e.fetch != nil:
		return math.MaxInt64, false // the fetch wakes the sweep when it comes back
	case now < e.idleSince+forgetAfter:
		return e.idleSince + forgetAfter, false
	}
	e.evicted = true
	return math.MaxInt64, true
}
